"""Pages in a real browser: what they draw, what they complain about, what they ask the network for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Opened:
    """A page with all that went wrong on it and all it asked for."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def assert_sound(self) -> None:
        """Every panel is drawn, the console is silent, and nothing but the file itself was asked for."""
        drawn = "p.querySelectorAll('.scatterlayer path, .boxlayer path').length"
        counts = self.page.evaluate(f"[...document.querySelectorAll('.plot')].map(p => {drawn})")
        assert all(counts), f"panels without a line: {[i for i, count in enumerate(counts) if not count]}"
        assert self.complaints == []
        assert set(self.requests) == {self.address}

    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, width: int = 1280, **options: Any) -> Iterator[Opened]:
    """A page in a window, once all its plots are drawn."""
    page = browser.new_page(viewport={"width": width, "height": 900}, **options)
    it = Opened(page, path.resolve().as_uri())
    page.on(
        "console", lambda message: it.complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: it.complaints.append(str(error)))
    page.on("request", lambda request: it.requests.append(request.url))
    try:
        page.goto(it.address)
        page.wait_for_selector("html[data-ready='true']", timeout=120_000)
        yield it
    finally:
        page.close()
