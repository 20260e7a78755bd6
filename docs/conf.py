"""The documentation site: `make docs` builds it, warnings are errors, nothing is fetched from the network."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")
_BESIDE = HERE.parents[1] / "shared" / "data"
if "FLORAL_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["FLORAL_DATA"] = str(_BESIDE)

import floral_learn  # noqa: E402

project = "floral-learn"
author = "The floral-learn developers"
copyright = author
version = release = floral_learn.__version__

extensions = [
    "cli_reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "narrow_cells",
    "own_members",
    "suite_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "README.md", "api/backreferences"]
# Of the folders of results, accuracy.md is a page of its own; cards are included in the page above them.
exclude_patterns += [
    str(table.relative_to(HERE)) for table in HERE.glob("results/*/**/*.md") if table.stem != "accuracy"
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pages that benchmark scripts write may skip a level

autosummary_generate = True
autodoc_typehints = "none"
# Presets take the parameters of their SVM from one place: defaults come from signatures, not from the source text.
autodoc_preserve_defaults = False
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.by_topic",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("floral_learn",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "matplotlib_animations": False,
    "parallel": int(os.environ.get("GALLERY_JOBS", "1")),
    "plot_gallery": os.environ.get("GALLERY", "1") != "0",
}
# joblib replaces a gallery worker whose memory has grown, and says so; nothing is lost.
warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")

html_theme = "pydata_sphinx_theme"
html_title = "floral-learn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_last_updated_fmt = None
html_theme_options = {
    "logo": {"text": "floral-learn", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Tables of results have up to a dozen columns: they get the whole width, so that none is cut off at 1280 pixels.
    "secondary_sidebar_items": {"*": ["page-toc"], "[!r]*/**": ["page-toc"], "results/**": []},
}
html_favicon = "_static/logo.svg"
# Pages without pages below them need no list of them.
ALONE = ("index", "getting-started", "cli", "theory", "design", "changelog", "results/**")
html_sidebars = {page: [] for page in ALONE}
