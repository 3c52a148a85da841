"""The site as it is built: without a warning, without other hosts, searchable from disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.page.browser import chromium

from .pages import PAGES, ROOT

_LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]+)\"|url\(([^)]+)\)|@import ([^;]+)")


def copied(folder: Path) -> Path:
    pytest.importorskip("zensical")
    pytest.importorskip("mkdocstrings_handlers.python")
    for name in ("mkdocs.yml", "docs", "src"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("site"))
    outcome = build(folder)
    assert outcome.returncode == 0, outcome.stderr
    return folder / "build" / "site"


def test_every_page_is_there(site: Path) -> None:
    made = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")} - {"404.md"}
    assert made == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}


def test_nothing_of_the_workshop_is_published(site: Path) -> None:
    assert not [path for path in site.rglob("*") if path.suffix == ".py" or path.name.startswith(".")]


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        for address in filter(None, (part for found in _LOADED.findall(path.read_text()) for part in found)):
            assert not re.match(r"[\"']?(https?:)?//", address), f"{path.name} loads {address}"


def test_a_docstring_that_cannot_be_read_ends_the_build(tmp_path: Path) -> None:
    source = copied(tmp_path) / "src" / "robustmdp" / "planning" / "solving.py"
    source.write_text(source.read_text().replace("    tol : float\n", "    toll : float\n"))
    outcome = build(tmp_path)
    assert outcome.returncode != 0
    assert "toll" in outcome.stderr


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    (copied(tmp_path) / "docs" / "citation.md").write_text("# Citation\n\n[nowhere](learning.md#nowhere)\n")
    assert build(tmp_path).returncode != 0


def test_search_works_from_disk_and_asks_no_one(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator(".md-search__button").first.click()
        page.get_by_placeholder("Search").press_sequentially("matching_radius")
        page.get_by_text(re.compile(r"^\d+ results?$")).wait_for(timeout=20_000)
        assert not [address for address in asked if not address.startswith(("file:", "data:", "blob:", "about:"))]
