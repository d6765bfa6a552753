"""Benchmarks of land: ``python -m benchmarks --help``.

One module per benchmark, named as on the command line, each with

    def run(quick: bool) -> list[Table]

To add one, write the module and put its name into `NAMES`.
"""

NAMES = (
    "comparison",
    "selection",
    "classifiers",
    "components",
    "inference",
    "log",
    "exp",
    "constant",
    "fit",
    "optimum",
    "mixture",
    "scaling",
    "scaling_data",
    "accelerator",
    "cluster",
    "many_data",
    "many_points",
    "dimensions",
    "cold",
    "memory",
)
