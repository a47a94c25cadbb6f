"""Every snippet of the docs runs, page by page in one namespace, and prints what the page says.

A `text` block right after a `python` block is what it prints. After a wanted change, write the
pages anew with `UPDATE_DOCS=1 pytest tests/test_docs.py`, and read the difference.
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

from flambeau.codegen import target

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


def ids(page: Path) -> str:
    return page.parent.name if page.stem == "index" else page.stem


def rewritten(page: Path) -> str:
    """The page with every `text` block saying what its snippet prints now."""
    text = page.read_text()
    space: dict = {"__name__": "__main__"}

    def run(block: re.Match) -> str:
        line = text[: block.start(1)].count("\n")
        code = compile("\n" * line + block[1], str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, space)
        said = printed.getvalue()
        return f"```python\n{block[1]}```\n" + (f"```text\n{said}```\n" if said else "")

    return _BLOCK.sub(run, text)


def shows_avx2() -> bool:
    with target.restricted("avx2") as shown:
        return shown.architecture == "x86_64" and shown.vector_bytes == 32


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_snippets_print_what_the_page_says(page, tmp_path, monkeypatch):
    if page.parent.name == "tour" and not shows_avx2():
        pytest.skip("the tour shows code for AVX2")
    monkeypatch.chdir(tmp_path)
    for name in [n for n in sys.modules if n.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)  # PyTorch, where other tests have loaded it
    new = rewritten(page)
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(new)
    assert new == page.read_text()


def test_the_index_links_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    docs = ROOT / "docs"
    names = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert {name for name in names if f"]({name})" not in index} == set()


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []
