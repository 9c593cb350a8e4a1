"""Settings of Sphinx: './tidemark docs' builds the pages of this folder as a site that needs no network."""

import re

from docutils import nodes
from pygments.lexers.special import TextLexer

project = "Tidemark"
html_title = "Tidemark"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as a forge makes them
highlight_language = "text"  # of blocks that name none
smartquotes = False  # quotation marks of commands are copied
html_theme = "furo"
html_static_path, html_css_files, templates_path = ["_static"], ["tables.css"], ["_templates"]
html_show_copyright = html_show_sphinx = html_copy_source = False

# Pages below another one in the navigation; those of index.md are in the order of its links, by section.
BELOW = {"systems": "systems/*", "studies": "studies/*"}
OF_STUDY = "studies/"  # below each of them are its claims
PAGE = re.compile(r"\]\(([\w/-]+)\.md\)")
ANCHOR = re.compile(r'<a id="([^"]+)">')
TREE = "\n```{{toctree}}\n:hidden:\n:glob:\n{}\n\n{}\n```\n"


def add_navigation(app, name, text):
    """Append the navigation, which a forge would show as code; pages above this folder are files to download."""
    del app
    above = "../" * (name.count("/") + 1)
    text[0] = re.sub(rf"\]\(({re.escape(above)}\w+\.md)", r"](path:\1", text[0])
    if name in BELOW:
        text[0] += TREE.format("", BELOW[name])
    if name.startswith(OF_STUDY):
        text[0] += TREE.format("", f"/claims/{name.removeprefix(OF_STUDY)}")
    if name == "index":
        seen = set()
        for section in text[0].split("\n## ")[1:]:
            pages = [page for page in dict.fromkeys(PAGE.findall(section)) if page not in seen]
            seen.update(pages)
            text[0] += TREE.format(f":caption: {section.partition('\n')[0]}", "\n".join(pages))


def add_anchors(app, document):
    """Let links lead to anchors that are written as HTML, such as those of claims."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in document.findall(nodes.raw):
        slugs.update({name: (None, name, name) for name in ANCHOR.findall(node.astext())})


def setup(app):
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", add_anchors)
