"""The queue: every problem is solved once, whatever their number and duration."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from land._device import run_in_batches


class Worker:
    """Counts down the duration of the problem in each slot, as the solvers iterate."""

    def __init__(self, durations, n_slots):
        self.durations = np.array(durations, dtype=int)
        self.left = np.zeros(n_slots, dtype=int)
        self.loaded, self.collected, self.rounds = [], [], 0

    def advance(self, problems, fresh, leave_at):
        assert np.all(problems[fresh] >= 0)
        self.loaded.extend(problems[fresh])
        self.left[fresh] = self.durations[problems[fresh]]
        while np.sum(self.left > 0) > leave_at:
            self.left = np.maximum(self.left - 1, 0)
            self.rounds += 1
        return self.left == 0

    def collect(self, slots, problems):
        assert np.all(problems >= 0)
        assert np.all(self.left[slots] == 0)
        self.collected.extend(problems)


@given(durations=st.lists(st.integers(0, 9), max_size=40), n_slots=st.integers(1, 12))
def test_every_problem_is_loaded_and_collected_once(durations, n_slots):
    worker = Worker(durations, n_slots)
    run_in_batches(len(durations), n_slots, worker.advance, worker.collect)
    assert worker.loaded == list(range(len(durations)))
    assert sorted(worker.collected) == list(range(len(durations)))


def test_a_straggler_does_not_hold_up_the_queue():
    """One long problem among short ones: the others pass it by."""
    durations = [50] + [1] * 63
    worker = Worker(durations, 8)
    run_in_batches(64, 8, worker.advance, worker.collect)
    assert worker.rounds < 70  # batch after batch would take 50 + 7, one by one 113
