import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The first example of a property pays for compilation, so time says nothing about it;
# the same examples every time, so that a failure is found again by running again.
settings.register_profile("land", deadline=None, derandomize=True)
settings.load_profile("land")


def pytest_configure(config: pytest.Config) -> None:
    _share_what_is_compiled(config)
    _leave_the_processors_to_the_workers()
    _let_children_be_interrupted()


@pytest.hookimpl(trylast=True)  # after nightly tests were deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: none is left over when the others are done."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def _share_what_is_compiled(config: pytest.Config) -> None:
    """Compile once: for the workers of a run, and for later runs."""
    cache = getattr(config, "cache", None)  # pytest may be told to do without
    if cache is not None and not hasattr(config, "workerinput"):
        folder = str(cache.mkdir("jax"))
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)
        # Small programs too: every process of a test has the same few dozen of them.
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def _leave_the_processors_to_the_workers() -> None:
    """One thread for products of small matrices: several wait for each other.

    Workers, and the processes that tests start, inherit it; NumPy reads it once.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# What is set above, and all of JAX's settings that a process of a test may inherit.
_COMPILED = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@pytest.fixture(scope="session")
def compiled_code() -> dict[str, str]:
    """Environment with which a process finds the code that others have compiled.

    It still traces, and still asks for every compilation: those can be counted.
    """
    return {name: os.environ[name] for name in _COMPILED if name in os.environ}


def _let_children_be_interrupted() -> None:
    """A shell's background jobs ignore Ctrl-C, and so would the programs under test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and not _has_accelerator():
        pytest.skip("JAX sees no accelerator on this machine")


def _has_accelerator() -> bool:
    import jax

    return any(device.platform != "cpu" for device in jax.devices())


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data: LAND_DATA_DIR, else shared/data beside the checkout."""
    named = os.environ.get("LAND_DATA_DIR")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is no folder; set LAND_DATA_DIR to one")
    return folder


@pytest.fixture(scope="session")
def run_fresh(compiled_code: dict[str, str]) -> Callable[..., str]:
    """Run a program in a fresh interpreter; return what it prints.

    Nothing that another test imported or allocated is there, and none of the settings
    of JAX that the environment of the tests may carry, but for the folder of compiled
    code: `compiles` is for programs that look at what the compiler does.
    """

    def run(program: str, *, timeout: float = 120.0, compiles: bool = False) -> str:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JAX_", "XLA_"))
        }
        # A hang is a failure: TimeoutExpired ends the program and says so.
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment
            | ({} if compiles else compiled_code)
            | {"JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


_COUNTING = """
import json
from collections import Counter
import jax
import numpy as np
import land

compiled = Counter()

def listen(event, duration, **details):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled[details.get("fun_name", "?")] += 1

jax.monitoring.register_event_duration_secs_listener(listen)

def count(call, *arguments, **options):
    compiled.clear()
    result = call(*arguments, **options)
    assert np.all(getattr(result, "converged", True))
    return dict(compiled)

counts = {}
PROGRAM
print(json.dumps(counts))
"""


@pytest.fixture(scope="session")
def count_compilations(run_fresh: Callable[..., str]) -> Callable[[str], Any]:
    """Run a program in a fresh interpreter; return its dictionary `counts`.

    The program fills it with ``count(call, *arguments, **options)``: how often XLA
    compiled during a call, by the name of the function, as JAX reports it to its
    monitoring listeners.
    """

    def run(program: str) -> Any:
        return json.loads(run_fresh(_COUNTING.replace("PROGRAM", program), timeout=300))

    return run
