"""The page as readers use it: mouse, keyboard, fingers, narrow screens, paper, no scripts, no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.page import samples
from app.page.browser import Opened, opened
from app.page.samples import COUNT, LABELS, LEVELS, START

# For each panel: the line's place in pixels, and where x belongs by the axis that is drawn.
LINES = """x => [...document.querySelectorAll('.explorer .plot')].map(plot => {
    const line = plot.querySelector('.shapelayer path');
    const { type, range, _offset, _length } = plot._fullLayout.xaxis;
    const place = type === 'log' ? Math.log10(x) : x;
    const expected = _offset + _length * (place - range[0]) / (range[1] - range[0]);
    return [line ? Number(line.getAttribute('d').match(/^M([-\\d.]+)/)[1]) : null, expected];
})"""
SHOWN = "document.querySelector('#figure-values .plot').data.map(t => t.visible ?? true)"
TYPES = "[...document.querySelectorAll('.plot')].map(p => p._fullLayout.xaxis.type)"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.written(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def desktop(browser: Any, path: Path) -> Iterator[Opened]:
    with opened(browser, path) as it:
        settle(it)
        yield it
        assert it.complaints == []


def settle(it: Opened) -> None:
    """Until what waits for the next picture is done."""
    it.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(it: Opened) -> list[str]:
    """The labels of the frames that can be seen."""
    found: list[str] = it.page.evaluate(
        "[...document.querySelectorAll('.frame')].filter(f => f.checkVisibility({visibilityProperty: true}))"
        ".map(f => f.dataset.label)"
    )
    return found


def assert_at(it: Opened, place: int) -> None:
    """Text, frame and lines all stand at one place."""
    settle(it)
    dial = it.page.locator("input[type=range]")
    assert dial.input_value() == str(place)
    assert dial.get_attribute("aria-valuetext") == LABELS[place]
    assert it.page.locator("output").inner_text() == LABELS[place]
    assert shown(it) == [LABELS[place]]
    lines = it.page.evaluate(LINES, float(LEVELS[place]))
    assert len(lines) == 2
    for drawn, expected in lines:
        assert drawn == pytest.approx(expected, abs=1.0)


def press(it: Opened, *strokes: str) -> None:
    it.page.locator("input[type=range]").focus()
    for stroke in strokes:
        it.page.keyboard.press(stroke)


@pytest.mark.parametrize("width", [1280, 360])
def test_everything_is_drawn_in_silence_and_nothing_is_fetched(browser: Any, path: Path, width: int) -> None:
    with opened(browser, path, width) as it:
        it.assert_sound()
        assert it.overflow() <= 0
        assert it.page.title() == samples.HOSTILE


def test_a_legend_button_hides_its_curve(desktop: Opened) -> None:
    button = desktop.page.locator("#figure-values .legend button").nth(1)
    assert button.inner_text() == "nominal"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert desktop.page.evaluate(SHOWN) == [True, False, True]
    button.click()
    assert desktop.page.evaluate(SHOWN) == [True, True, True]


@pytest.mark.parametrize("stroke", ["Enter", "Space"])
def test_the_keyboard_does_what_the_mouse_does(desktop: Opened, stroke: str) -> None:
    desktop.page.locator("#figure-values .legend button").first.focus()
    desktop.page.keyboard.press(stroke)
    desktop.page.keyboard.press("Tab")
    desktop.page.keyboard.press(stroke)
    assert desktop.page.evaluate(SHOWN) == [False, False, True]
    focused = desktop.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert focused == "solid"


def test_axes_switch_between_linear_and_log(desktop: Opened) -> None:
    assert desktop.page.evaluate(TYPES) == ["log", "linear"]
    for figure, types in (("values", ["linear", "linear"]), ("changes", ["linear", "log"])):
        button = desktop.page.locator(f"#figure-{figure} button[data-axis='x']")
        before = button.get_attribute("aria-pressed")
        button.click()
        assert button.get_attribute("aria-pressed") != before
        assert desktop.page.evaluate(TYPES) == types
    desktop.assert_sound()


def test_no_button_leads_elsewhere(desktop: Opened) -> None:
    titles = desktop.page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert set(titles) == {"Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}
    assert desktop.page.locator(".modebar-btn--logo, a[href^='http']").count() == 0


def test_paper_gets_plots_that_fit_and_the_current_frame_alone(desktop: Opened) -> None:
    press(desktop, "Home")
    desktop.page.emulate_media(media="print")
    desktop.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    widths = desktop.page.evaluate("[...document.querySelectorAll('.plot')].map(p => p._fullLayout.width)")
    assert max(widths) <= 210 / 25.4 * 96
    displayed = desktop.page.evaluate(
        "[...document.querySelectorAll('.frame')].filter(f => getComputedStyle(f).display !== 'none')"
        ".map(f => f.dataset.label)"
    )
    assert displayed == [LABELS[0]]
    assert desktop.page.locator("output").is_visible()
    for hidden in ("nav", ".switches", ".turn", "[data-copy]"):
        assert not desktop.page.locator(hidden).first.is_visible()
    desktop.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert len(desktop.page.pdf()) > 10_000


def test_it_starts_where_it_was_told_to(desktop: Opened) -> None:
    assert_at(desktop, START)
    desktop.assert_sound()


def test_the_mouse_moves_it(desktop: Opened) -> None:
    dial = desktop.page.locator("input[type=range]")
    dial.scroll_into_view_if_needed()
    box = dial.bounding_box()
    desktop.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    desktop.page.mouse.down()
    desktop.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=10)
    place = int(dial.input_value())
    assert place == pytest.approx(COUNT / 4, abs=2)
    assert_at(desktop, place)
    desktop.page.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2, steps=10)
    desktop.page.mouse.up()
    assert_at(desktop, COUNT - 1)


def test_the_keyboard_moves_it(desktop: Opened) -> None:
    press(desktop, "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowUp")
    assert_at(desktop, START + 2)
    press(desktop, "Home")
    assert_at(desktop, 0)
    press(desktop, "End")
    assert_at(desktop, COUNT - 1)
    outline = desktop.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("name", ["Previous", "Next"])
def test_buttons_move_it_by_one_and_stop_at_the_end(desktop: Opened, name: str) -> None:
    button = desktop.page.get_by_role("button", name=f"{name}: Weight")
    step = 1 if name == "Next" else -1
    button.click()
    assert_at(desktop, START + step)
    button.press("Enter")
    assert_at(desktop, START + 2 * step)
    end = COUNT - 1 if name == "Next" else 0
    press(desktop, "End" if name == "Next" else "Home")
    assert button.get_attribute("aria-disabled") == "true"
    button.focus()
    desktop.page.keyboard.press("Enter")
    assert_at(desktop, end)
    assert button.evaluate("it => it === document.activeElement")


def test_lines_survive_the_switch_of_scales(desktop: Opened) -> None:
    switch = desktop.page.locator("#figure-changes button[data-axis='x']")
    for _ in range(3):
        switch.click()
        assert_at(desktop, START)
        press(desktop, "ArrowRight")
        assert_at(desktop, START + 1)
        press(desktop, "ArrowLeft")
    desktop.page.locator("#figure-values button[data-axis='y']").click()
    assert_at(desktop, START)


def test_moving_leaves_the_axes_alone(desktop: Opened) -> None:
    ranges = "JSON.stringify([...document.querySelectorAll('.explorer .plot')].map(p => p._fullLayout.xaxis.range))"
    before = desktop.page.evaluate(ranges)
    for stroke in ("Home", "End", "ArrowLeft"):
        press(desktop, stroke)
        settle(desktop)
        assert desktop.page.evaluate(ranges) == before


def test_a_click_on_a_point_moves_it_there(desktop: Opened) -> None:
    plot = desktop.page.locator(".explorer .plot").nth(1)
    plot.scroll_into_view_if_needed()
    for number in (COUNT - 1, 40):
        point = plot.locator(".scatterlayer .point").nth(number)
        box = point.bounding_box()
        desktop.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        desktop.page.wait_for_timeout(150)
        desktop.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert_at(desktop, number)


def test_the_page_does_not_jump(desktop: Opened) -> None:
    desktop.page.evaluate("document.querySelector('.dial').scrollIntoView({behavior: 'instant'})")
    height = "document.documentElement.scrollHeight"
    press(desktop, "Home")
    before = desktop.page.evaluate(f"[{height}, scrollY]")
    for _ in range(COUNT - 1):
        desktop.page.keyboard.press("ArrowRight")
        assert desktop.page.evaluate(f"[{height}, scrollY]") == before
    heights = desktop.page.evaluate("[...document.querySelectorAll('.frame')].map(f => f.scrollHeight)")
    assert desktop.page.evaluate("document.querySelector('.frames').clientHeight") >= max(heights)


def test_many_moves_in_one_picture_draw_lines_once(desktop: Opened) -> None:
    drawn = desktop.page.evaluate(
        """async () => {
            let drawn = 0;
            document.querySelector('.explorer .plot').on('plotly_relayout', () => { drawn += 1; });
            const range = document.querySelector('input[type=range]');
            for (let place = 0; place < 50; place += 1) {
                range.value = place;
                range.dispatchEvent(new Event('input'));
            }
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            return drawn;
        }"""
    )
    assert drawn == 1
    assert_at(desktop, COUNT - 1)


def test_the_dial_stays_in_sight_beside_its_frames(desktop: Opened) -> None:
    desktop.page.evaluate("document.querySelector('.frames').scrollIntoView({block: 'end', behavior: 'instant'})")
    settle(desktop)
    assert desktop.page.locator(".dial").bounding_box()["y"] == pytest.approx(0, abs=1)


def test_fingers_move_it_and_scroll_the_page(browser: Any, path: Path) -> None:
    with opened(browser, path, 390, has_touch=True, is_mobile=True) as it:
        modes = it.page.evaluate("[...document.querySelectorAll('.plot')].map(p => p._fullLayout.dragmode)")
        assert set(modes) == {False}
        sizes = it.page.locator(".turn > *").evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")
        assert min(sizes) >= 44
        dial = it.page.locator("input[type=range]")
        dial.scroll_into_view_if_needed()
        box = dial.bounding_box()
        it.page.touchscreen.tap(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
        place = int(dial.input_value())
        assert place == pytest.approx(0.75 * COUNT, abs=2)
        assert_at(it, place)
        assert it.complaints == []


def test_without_scripts_the_starting_frame_is_shown(browser: Any, path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    frames = page.locator(".frame")
    assert [frames.nth(k).is_visible() for k in (0, START, COUNT - 1)] == [False, True, False]
    assert page.locator(".frame:visible").count() == 1
    assert page.locator("output").inner_text() == LABELS[START]
    assert [page.locator(name).first.is_visible() for name in (".turn", "[data-copy]", "pre")] == [False, False, True]
    context.close()


def pasted(it: Opened) -> str:
    """What the clipboard holds, as the browser would paste it."""
    it.page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), {id: 'target'}))")
    it.page.locator("#target").focus()
    it.page.keyboard.press("Control+V")
    return str(it.page.locator("#target").input_value())


@pytest.mark.parametrize("clipboard", ["undefined", "{writeText: () => Promise.reject(new Error('refused'))}"])
def test_code_is_copied_where_the_clipboard_is_missing_or_refuses(desktop: Opened, clipboard: str) -> None:
    desktop.page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{value: {clipboard}}})")
    button = desktop.page.locator("[data-copy]").first
    button.click()
    desktop.page.locator("[data-copy][aria-live=polite]", has_text="Copied").wait_for()
    desktop.page.locator("[data-copy]", has_text="Copied").wait_for(state="detached")
    assert button.inner_text() == "Copy"
    assert pasted(desktop) == samples.PROGRAM


def test_code_is_copied_by_the_clipboard(desktop: Opened) -> None:
    desktop.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.kept = text; }}})"
    )
    desktop.page.locator("[data-copy]").first.press("Enter")
    desktop.page.locator("[data-copy]", has_text="Copied").wait_for()
    assert desktop.page.evaluate("window.kept") == samples.PROGRAM


def test_where_nothing_copies_the_code_is_selected(desktop: Opened) -> None:
    desktop.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    desktop.page.evaluate("document.execCommand = () => false")
    button = desktop.page.locator("[data-copy]").nth(1)
    button.click()
    assert button.inner_text() == "Selected: press Ctrl+C"
    assert desktop.page.evaluate("String(getSelection())") == "robustmdp solve chain --weight 1"


def test_hover_over_a_cell_tells_what_it_is(desktop: Opened) -> None:
    cell = desktop.page.locator(".frame.current .cells i").first
    assert cell.get_attribute("title") == samples.HOSTILE
