"""Sphinx configuration."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for reproduction

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
    "sphinx_gallery.gen_gallery",
]

exclude_patterns = ["_build", "gallery"]
html_theme = "furo"
html_title = f"land {release}"
if "dev" in release:
    notice = f"These pages are about a development version, {release}."
    html_theme_options = {"announcement": notice}

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

sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "../examples"],
    "gallery_dirs": ["generated/gallery", "generated/examples"],
    "backreferences_dir": "generated/backreferences",  # for `minigallery`
    "image_srcset": ["2x"],
    # Scripts on recordings run where these are; their code is shown in any case.
    "filename_pattern": (
        "" if "LAND_DATA_DIR" in os.environ else "/(?!sleep_|motion_)[^/]*$"
    ),
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
}
