"""Statistical inference on a learned metric: confidence regions and tests.

`bootstrap` has confidence regions of the mean and the covariance of a `LAND`.
`two_sample_test` tells whether two samples differ, `goodness_of_fit` whether new rows
are from a fitted model; both are permutation tests with exact levels.
"""

from land.estimators.bootstrap import Bootstrap, bootstrap
from land.estimators.permutation import (
    PermutationTest,
    goodness_of_fit,
    two_sample_test,
)

__all__ = [
    "Bootstrap",
    "PermutationTest",
    "bootstrap",
    "goodness_of_fit",
    "two_sample_test",
]
