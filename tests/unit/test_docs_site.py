"""What can be said of the documentation site without building it; `make docs` checks the links."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = (ROOT / "mkdocs.yml").read_text()
LISTED = re.findall(r"^ +- [^:]+: (\S+\.md)$", SITE.partition("\nnav:")[2], re.MULTILINE)
NAV = set(LISTED)


def constant(name: str):
    tree = ast.parse((ROOT / "scripts" / "site_pages.py").read_text())
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    return ast.literal_eval(found)


def test_every_page_has_a_place_in_the_navigation_and_every_place_has_a_page():
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    generated = {
        *constant("MOVED").values(),
        *(f"api/{name}.md" for name in (*constant("MODULES"), "declared")),
    }
    assert pages - decisions | generated == NAV
    assert len(LISTED) == len(NAV), "a page stands twice in mkdocs.yml"


def test_every_public_module_has_a_page_of_the_api_reference():
    modules = {path.stem for path in (ROOT / "src" / "penstock").glob("*.py")}
    public = modules - {"__init__", "errors"} | {
        "penstock",
        "client",
        "connectors",
        "models",
        "testing",
    }
    assert set(constant("MODULES")) == public


def test_the_site_asks_the_web_for_nothing():
    assert "font: false" in SITE
    assert "://" not in SITE
