"""Benchmarks of land: ``python -m benchmarks --help``.

One module per benchmark, named as on the command line, each with

    def run(quick: bool) -> list[Table]

To add one, write the module and put its name below, under the page of its tables.
"""

# What is run without names: the page on performance, in less than twenty minutes.
SPEED = ("log", "exp", "limit", "fits", "growth", "constant")
PAGES = {
    **dict.fromkeys(SPEED, "performance"),
    **dict.fromkeys(("comparison", "selection", "optimum"), "comparison"),
    **dict.fromkeys(("classifiers", "components", "inference"), "methods"),
}
