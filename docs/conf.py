"""Sphinx configuration."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # for make_figures and reproduction

project = "land"
author = "The land developers"
copyright = "2026, The land developers"
release = installed_version("land")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]

exclude_patterns = ["_build", "gallery"]
html_theme = "furo"
html_title = f"land {release}"

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {
    "members": True,
    # scikit-learn adds these to every estimator; their docstrings refer to its docs.
    "exclude-members": (
        "set_fit_request, set_score_request, set_transform_request, "
        "set_predict_request, get_metadata_routing, set_output"
    ),
}
autodoc_typehints = "none"  # docstrings give types in words and shapes
autosummary_generate = True
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_rtype = False


def setup(app):
    """Run the scripts of the gallery before the pages are read."""
    from make_figures import make_pages

    app.connect("builder-inited", lambda app: make_pages())
