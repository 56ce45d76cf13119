"""The site of the documents: what is generated for it, and that nothing in it is dead or blank.

The built site is walked where MINIJAX_SITE names it, as `make test-docs` does.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.explain.pages import test_browser
from tools.site import docstrings, documents, gallery, links, reference

ROOT = Path(__file__).parents[2]
SITE = os.environ.get("MINIJAX_SITE", "")

pytestmark = pytest.mark.feature("PG-03")

DOCSTRING = """Sums `x` over *all* `axes`.

More of it.

Shapes: x: T[s] -> T[s without
    axes].
Source: mirrors jax.lax.reduce_sum.

Args:
    x: an array,
        or a number.
    *rest: others.

Raises:
    ValueError: no such axis.

Example:
    >>> reduce_sum(x)
    3
"""


def test_docstrings_become_markdown() -> None:
    assert docstrings.markdown(DOCSTRING, ":Defined in: here").splitlines() == [
        r"Sums `x` over \*all\* `axes`.",
        "",
        "More of it.",
        "",
        r":Shapes: x: T\[s\] -\> T\[s without axes\].",
        r":Source: mirrors jax.lax.reduce\_sum.",
        ":param x: an array, or a number.",
        r":param \*rest: others.",
        ":raises ValueError: no such axis.",
        ":Defined in: here",
        "",
        "```pycon",
        ">>> reduce_sum(x)",
        "3",
        "```",
    ]


def test_reference_describes_each_public_function_once() -> None:
    pages = dict(reference.pages())
    everything = "\n".join(pages.values())
    assert everything.count(":::{py:function} minijax.lax.psum(") == 1
    assert "x, axis_name, *, axis_index_groups=None)" in pages["minijax.lax"]
    # Shown by two modules, described by the first.
    assert ":::{py:function} minijax.no_retrace" not in pages["minijax.explain"]
    assert "<minijax.no_retrace>" in pages["minijax.explain"]
    # Defaults that have no short form are dots.
    assert "<function" not in everything


def test_every_document_is_in_the_site(tmp_path: Path) -> None:
    copied = {path.relative_to(tmp_path).as_posix() for path in documents.copied(tmp_path)}
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert here <= copied
    first = (tmp_path / "index.md").read_text(encoding="utf-8")
    listed = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {name for name in listed if f"\ndocs/{name}\n" not in first} == set()
    assert "(../index.md)" not in first


def test_gallery_has_every_example(tmp_path: Path) -> None:
    pages = dict(gallery.pages(tmp_path))
    assert set(pages) == {path.stem for path in (ROOT / "examples").glob("*.py")} | {"README"}
    assert "literalinclude} demo.py" in pages["demo"]
    assert "[`demo.py`](demo.md)" in pages["README"]


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html#y">b</a><a href="#x">x</a><a href="c.html">c</a>'
        '<a href="b.html#z">z</a><a href="https://example.org">out</a>'
        '<img src="d.png"><script src="https://example.org/e.js"></script>'
    )
    (tmp_path / "b.html").write_text('<h1 id="y">')
    assert [(fault.target, fault.problem) for fault in links.faults(tmp_path)] == [
        ("https://example.org/e.js", "a network would be asked for it"),
        ("c.html", "there is no such file"),
        ("b.html#z", "there is no such anchor"),
        ("d.png", "there is no such file"),
    ]


@pytest.mark.skipif(not SITE, reason="the site is walked by `make test-docs`")
def test_nothing_in_the_site_is_dead() -> None:
    assert links.faults(ROOT / SITE) == []


@pytest.mark.slow
@pytest.mark.skipif(
    not SITE or bool(test_browser.missing()),
    reason=test_browser.missing() or "the site is walked by `make test-docs`",
)
def test_nothing_in_the_site_is_blank() -> None:
    shots = ROOT / "out" / "site-shots"
    shutil.rmtree(shots, ignore_errors=True)
    command = ["node", "tests/site.mjs", str(ROOT / SITE), str(shots)]
    done = subprocess.run(
        command, cwd=ROOT / "web", capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert " figures and frames looked at" in done.stdout
