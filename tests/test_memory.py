"""Freed memory is kept in processes that were told to give it back at once."""

import os
import platform
import subprocess
import sys

import pytest

# Page faults of a process that frees a block of 1 MiB and asks for it again.
PROGRAM = """
import resource, sys
import numpy as np
from land._memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(2**17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
keep_freed_memory()
np.ones(2**17)
print(before, faults())
"""

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="settings of another C library"
)


def faults_before_and_after(**environment):
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(count) for count in child.stdout.split()]


def test_freed_memory_is_kept_in_the_worker_of_a_cluster():
    before, after = faults_before_and_after(MALLOC_TRIM_THRESHOLD_="65536")
    assert before > 1000  # else there is nothing to mend
    assert after < 100


def test_explicit_settings_of_the_user_are_respected():
    _, after = faults_before_and_after(
        MALLOC_TRIM_THRESHOLD_="65536", MALLOC_MMAP_THRESHOLD_="131072"
    )
    assert after > 1000
