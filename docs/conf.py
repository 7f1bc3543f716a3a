"""Sphinx, laid out as PySpark's own documentation is. `make docs` builds it."""

from importlib.metadata import version as installed

project = "Slackwater"
copyright = "the Slackwater authors"
version = release = installed("slackwater")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, such as LICENSE
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "Slackwater"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "show_prev_next": True}
