"""Builds the site of the documents: `python -m tools.site`, or `make docs`.

Input: the documents of the checkout, docstrings, examples.  Output: `out/site`, of which nothing
asks a network.  Sphinx reads a copy of the documents, laid out as in the checkout, beside generated
pages; what has not changed is not made again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools.site import documents, gallery, reference

_ROOT = Path(__file__).resolve().parents[2]
_OUT = _ROOT / "out"
SITE = _OUT / "site"
_WORK = _OUT / "docs"


def main() -> int:
    """Gathers the documents, and lets Sphinx make the site; its exit status."""
    started = time.perf_counter()
    source, extra, cache = _WORK / "source", _WORK / "extra", _WORK / "notebooks"
    _forget_results_of_other_sources(cache)
    print("pages of the examples", flush=True)
    gallery.make_pages(extra / "pages")
    print(f"made in {time.perf_counter() - started:.0f} s", flush=True)
    written = set(documents.copied(source))
    written |= set(documents.written(source / "reference", reference.pages()))
    written |= set(documents.written(source / "examples", gallery.pages(extra / "pages")))
    _remove_all_but(source, written)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    command += ["-b", "html", "-c", str(_ROOT / "docs"), "-d", str(_WORK / "doctrees")]
    settings = {"MINIJAX_SITE_CACHE": str(cache), "MINIJAX_SITE_EXTRA": str(extra)}
    done = subprocess.run(
        [*command, str(source), str(SITE)], env={**os.environ, **settings}, cwd=_ROOT, check=False
    )
    print(f"{SITE / 'index.html'}: {time.perf_counter() - started:.0f} s")
    return done.returncode


def _forget_results_of_other_sources(cache: Path) -> None:
    """Removes results of notebooks that another state of the package gave."""
    stamp = cache / "sources.sha256"
    digest = gallery.sources_digest("minijax")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != digest:
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        stamp.write_text(digest, encoding="utf-8")


def _remove_all_but(folder: Path, kept: set[Path]) -> None:
    """Removes pages of documents that are no more."""
    for path in folder.rglob("*.md"):
        if path not in kept:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
