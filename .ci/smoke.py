"""Try an installed land from outside its repository; run by `make dist`."""

from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec

import numpy as np

import land
from land import datasets
from land.cli import main

X = datasets.make_half_ellipse(50, random_state=0)
assert X.shape == (50, 2)
assert np.isfinite(datasets.half_ellipse_log_density(X)).all()
metric = land.metrics.LocalDiagonalMetric(X, sigma=0.3, rho=1e-3)
assert land.log_map(metric, X[0], X).converged.all()
assert find_spec("reproduction") is None
assert main(["reproduce", "--list"]) == 1  # says where the experiments are
assert files(land).joinpath("py.typed").is_file()
print(f"land {version('land')} works, installed in {land.__path__[0]}")
