"""Sphinx on the pages of the repository as they stand; see build.py."""

from importlib.metadata import version as version_of

project = "whywait"
author = "The whywait authors"
copyright = "The whywait authors"  # noqa: A001  (Sphinx's name for it)
version = release = version_of("whywait")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
# Anchors as GitHub makes them: the same links work there and here.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
default_role = "py:obj"

html_theme = "pydata_sphinx_theme"
html_title = "whywait"
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 2,
}
# A name that several classes have is a link to one of them; the blocks of pattern documents are plain text.
suppress_warnings = ["ref.python", "misc.highlighting_failure"]
