"""The page as readers use it: drawn, silent, offline; legend and axes by mouse and keyboard; narrow screens; paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.page import samples
from app.page.browser import Opened, opened
from robustmdp.app.page import Section, write_page


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    return write_page(folder / "page.html", samples.HOSTILE, "All kinds of content.", samples.sections())


@pytest.fixture
def desktop(browser: Any, path: Path) -> Iterator[Opened]:
    with opened(browser, path) as it:
        yield it
        assert it.complaints == []


def visibility(it: Opened, figure: str) -> list[list[tuple[Any, bool]]]:
    """For each plot of a figure the key of each trace and whether it is shown."""
    found: list[list[tuple[Any, bool]]] = it.page.evaluate(
        f"[...document.querySelectorAll('#{figure} .plot')].map(p => p.data.map(t => [t.meta ?? null, t.visible]))"
    )
    return found


def assert_hidden(it: Opened, figure: str, keys: set[int]) -> None:
    for plot in visibility(it, figure):
        assert any(key in keys for key, _ in plot) or not keys
        assert all(shown == (key not in keys) for key, shown in plot)


@pytest.mark.parametrize("width", [1280, 360])
def test_everything_is_drawn_in_silence_and_nothing_is_fetched(browser: Any, path: Path, width: int) -> None:
    with opened(browser, path, width) as it:
        it.assert_sound()
        assert it.overflow() <= 0
        assert it.page.title() == samples.HOSTILE


def test_a_legend_button_hides_its_key_in_all_panels(desktop: Opened) -> None:
    button = desktop.page.locator("#figure-learning button[data-key='2']")
    assert button.inner_text() == "λ = 2"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert_hidden(desktop, "figure-learning", {2})
    assert_hidden(desktop, "figure-styles", set())
    button.click()
    assert_hidden(desktop, "figure-learning", set())


def test_legend_buttons_hide_arrows(desktop: Opened) -> None:
    desktop.page.locator("#figure-chain button[data-key='1']").click()
    assert_hidden(desktop, "figure-chain", {1})


@pytest.mark.parametrize("stroke", ["Enter", "Space"])
def test_the_keyboard_does_what_the_mouse_does(desktop: Opened, stroke: str) -> None:
    desktop.page.locator("#figure-learning button[data-key='0']").focus()
    desktop.page.keyboard.press(stroke)
    desktop.page.keyboard.press("Tab")
    desktop.page.keyboard.press(stroke)
    assert_hidden(desktop, "figure-learning", {0, 1})
    focused = desktop.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert focused == "solid"


def axis_types(it: Opened, axis: str) -> list[str]:
    found: list[str] = it.page.evaluate(
        f"[...document.querySelectorAll('#figure-learning .plot')].map(p => p._fullLayout.{axis}.type)"
    )
    return found


def test_axes_switch_between_linear_and_log(desktop: Opened) -> None:
    y = desktop.page.locator("#figure-learning button[data-axis='y']")
    assert y.get_attribute("aria-pressed") == "mixed"
    assert axis_types(desktop, "yaxis") == ["linear", "log"]
    y.click()
    assert axis_types(desktop, "yaxis") == ["log", "log"]
    x = desktop.page.locator("#figure-learning button[data-axis='x']")
    x.click()
    assert axis_types(desktop, "xaxis") == ["log", "log"]
    y.click()
    assert y.get_attribute("aria-pressed") == "false"
    assert axis_types(desktop, "yaxis") == ["linear", "linear"]
    desktop.assert_sound()


def test_on_log_axes_bands_end_at_the_smallest_positive_number(desktop: Opened) -> None:
    lowest = "Math.min(...p.data.filter(t => t.fill).flatMap(t => t.y.filter(v => v !== null)))"
    script = f"(() => {{ const p = document.querySelector('#figure-learning .plot'); return {lowest}; }})()"
    assert desktop.page.evaluate(script) < 0
    desktop.page.locator("#figure-learning button[data-axis='y']").click()
    assert desktop.page.evaluate(script) > 0


def test_the_inset_shows_its_range_and_leaves_when_x_changes(desktop: Opened) -> None:
    corner = "document.querySelector('#figure-learning .plot')._fullLayout.xaxis2"
    assert desktop.page.evaluate(f"{corner}.range") == [8e5, 1e6]
    button = desktop.page.locator("#figure-learning button[data-axis='x']")
    button.click()
    assert desktop.page.evaluate(f"{corner}.visible") is False
    shown = "document.querySelector('#figure-learning .plot').data.filter(t => t.xaxis === 'x2' && t.visible).length"
    assert desktop.page.evaluate(shown) == 0
    button.click()
    assert desktop.page.evaluate(f"{corner}.visible") is True
    assert desktop.page.evaluate(shown) == 14
    assert desktop.page.evaluate(f"{corner}.range") == [8e5, 1e6]


def test_hover_tells_key_name_and_numbers(desktop: Opened) -> None:
    plot = desktop.page.locator("#figure-styles .plot")
    plot.scroll_into_view_if_needed()
    desktop.page.evaluate(
        "Plotly.Fx.hover(document.querySelector('#figure-styles .plot'), [{curveNumber: 1, pointNumber: 1}])"
    )
    label = " ".join(plot.locator(".hoverlayer .nums tspan").all_text_contents())
    for part in ("one", "(fit)", "n: 10", "error: 0.2"):
        assert part in label


def test_no_button_leads_elsewhere(desktop: Opened) -> None:
    titles = desktop.page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert set(titles) == {"Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}
    assert desktop.page.locator(".modebar-btn--logo, a[href^='http']").count() == 0


def test_paper_gets_plots_that_fit(desktop: Opened) -> None:
    desktop.page.emulate_media(media="print")
    desktop.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    widths = desktop.page.evaluate("[...document.querySelectorAll('.plot')].map(p => p._fullLayout.width)")
    assert max(widths) <= 210 / 25.4 * 96
    assert not desktop.page.locator("nav").is_visible()
    assert not desktop.page.locator(".switches").first.is_visible()
    desktop.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert len(desktop.page.pdf()) > 10_000


def test_numbers_that_cannot_be_drawn_cause_no_errors(browser: Any, tmp_path: Path) -> None:
    path = write_page(tmp_path / "page.html", "Awkward", "", [Section("Figures", (samples.awkward(),))])
    with opened(browser, path) as it:
        for button in it.page.locator("button").all() * 2:
            button.click()
        assert it.complaints == []


def test_fingers_scroll_the_page_instead_of_zooming(browser: Any, path: Path) -> None:
    with opened(browser, path, 390, has_touch=True, is_mobile=True) as it:
        modes = it.page.evaluate("[...document.querySelectorAll('.plot')].map(p => p._fullLayout.dragmode)")
        assert set(modes) == {False}
