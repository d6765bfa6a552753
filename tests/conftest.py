import pytest
from hypothesis import settings

# The first example of a property pays for compilation, so time says nothing about it;
# the same examples every time, so that a failure is found again by running again.
settings.register_profile("land", deadline=None, derandomize=True)
settings.load_profile("land")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and not _has_accelerator():
        pytest.skip("JAX sees no accelerator on this machine")


def _has_accelerator() -> bool:
    import jax

    return any(device.platform != "cpu" for device in jax.devices())
