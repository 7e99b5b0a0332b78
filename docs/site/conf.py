"""Settings of Sphinx for the site; tools/site copies the tree's pages beside this file and builds them."""
import os
import pathlib

from docutils import nodes
from sphinx.addnodes import download_reference

project = "ndtd"
release = os.environ["NDT_SITE_VERSION"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["*.md", "docs/*.md", "proto/*.md"]
exclude_patterns = ["README.md"]  # index.md is made of its parts
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 6
smartquotes = False
default_role = "code"
highlight_language = "none"
html_theme = "furo"
html_title = f"ndtd {release}"
html_extra_path = ["extra"]
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # they are fetched, which browsers forbid to pages from a disk
html_css_files = ["site.css"]
html_static_path = ["static"]
autoclass_content = "both"
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
napoleon_use_param = napoleon_use_rtype = False  # their words are prose, not names to link


def mark_examples(app, what, name, obj, options, lines):
    """Indented lines after a paragraph of a docstring are an example; reStructuredText wants '::' before it."""
    before = "x"
    for at in range(len(lines) - 1, 1, -1):
        before = next((line for line in reversed(lines[:at]) if line), "")
        if lines[at].startswith("    ") and not lines[at - 1] and not before.startswith(" "):
            lines[at:at] = ["::", ""]


def link_headers(app, doctree):
    """A link to a public header leads to its page of Doxygen, which is named after the file; others lead to a copy."""
    depth = app.env.docname.count("/")
    for node in list(doctree.findall(download_reference)):
        path = pathlib.PurePosixPath(node["reftarget"])
        if path.suffix == ".h" and "include" in path.parts:
            page = path.name.replace("_", "__").replace(".", "_8") + ".html"
            node.replace_self(nodes.reference("", "", *node.children, refuri="../" * depth + "c-api/" + page, internal=True))


def setup(app):
    app.connect("autodoc-process-docstring", mark_examples, priority=400)
    app.connect("doctree-read", link_headers)
