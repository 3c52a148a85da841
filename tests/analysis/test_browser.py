"""The page in a browser: the slider moves values, policy and bars, and what it shows is what was computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from report.browser import Opened, chromium, opened
from robustmdp.analysis import Analysis
from robustmdp.analysis.layout import of_environment
from robustmdp.analysis.nature import rows_of
from robustmdp.analysis.numbers import short

# Where the dashed line of the first plot stands, in pixels.
LINE = "Number(document.querySelector('.slider .plot .shapelayer path').getAttribute('d').match(/^M([-\\d.]+)/)[1])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as it:
        yield it


@pytest.fixture(scope="module")
def lake() -> Analysis:
    """Places, arrows, held-out worlds, and a radius as the answer."""
    env = gymnasium.make("FrozenLake-v1", map_name="8x8")
    worlds = rm.worlds.environments("FrozenLake8x8-v1", 0.99, success_rate=[0.4, 0.5, 0.6, 0.7])
    return rm.analyse(
        rm.MDP.from_gymnasium(env, 0.99), held_out=worlds, initial=0, layout=of_environment(env), title="A lake"
    )


@pytest.fixture(scope="module")
def machine() -> Analysis:
    """A table of states, and a penalty as the answer."""
    return rm.analyse(rm.problems.machine_replacement(), initial=0, title="Machines")


@pytest.fixture(scope="module", params=["lake", "machine"])
def analysis(request: pytest.FixtureRequest) -> Analysis:
    found: Analysis = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def path(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return analysis.write(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="module")
def window(browser: Any, path: Path) -> Iterator[Opened]:
    with opened(browser, path) as it:
        yield it


@pytest.fixture
def desktop(window: Opened, analysis: Analysis) -> Iterator[Opened]:
    """The page as it is when it is opened."""
    press(window, "Home", *["ArrowRight"] * start(analysis))
    yield window
    assert window.complaints == []


def settle(it: Opened) -> None:
    it.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def press(it: Opened, *strokes: str) -> None:
    it.page.locator("input[type=range]").focus()
    for stroke in strokes:
        it.page.keyboard.press(stroke)
    settle(it)


def order(analysis: Analysis) -> list[int]:
    """The places of the levels, from left to right."""
    return sorted(range(len(analysis.study.points)), key=lambda place: analysis.study.points[place].level)


def start(analysis: Analysis) -> int:
    """Where the slider is to stand at first."""
    assert analysis.study.place is not None
    return order(analysis).index(analysis.study.place)


def assert_shown(it: Opened, analysis: Analysis, number: int) -> None:
    """Value, policy and bars of the level at this place of the slider, and of no other."""
    study = analysis.study
    place = order(analysis)[number]
    point = study.points[place]
    assert it.page.locator("output").inner_text().startswith(study.said(place))
    frame = it.page.locator(".frame.current")
    assert frame.count() == 1
    text = frame.inner_text()
    assert f"{short(float(study.start @ point.robust.value))}, proved to within" in text
    assert f"{short(float(study.start @ point.under_model))}; the best possible is" in text
    assert f"{len(point.changed)} of {study.mdp.n_states}" in text
    closed = analysis.names.layout.closed if analysis.names.layout else ()
    actions = [analysis.names.action(int(action)) for action in point.robust.policy]
    wanted = {analysis.names.state(s): action for s, action in enumerate(actions) if s not in closed}
    assert policy_of(frame, analysis) == wanted
    assert_bars(frame, analysis, point)


def policy_of(frame: Any, analysis: Analysis) -> dict[str, str]:
    """The action in each state, as the frame tells it: on hover over a cell, or in a column."""
    if analysis.names.layout is None:
        states, actions = (
            frame.locator(f"tbody tr {column}").all_inner_texts() for column in ("th", "td:nth-child(2)")
        )
        count = analysis.study.mdp.n_states
        return {name.removeprefix("◆ "): action for name, action in zip(states[:count], actions[:count], strict=True)}
    titles = [title.split(": ") for title in frame.locator(".cells title").all_text_contents() if ": " in title]
    return {name: said.split(",")[0] for name, said in titles}


def assert_bars(frame: Any, analysis: Analysis, point: Any) -> None:
    """The widths of the bars are nature's probabilities at this level."""
    study, names = analysis.study, analysis.names
    captions = frame.locator(".distribution caption").all_inner_texts()
    assert len(captions) == 2
    shares = frame.locator(".distribution .bars .worst").evaluate_all(
        "all => all.filter(bar => bar.style.getPropertyValue('--share'))"
        ".map(bar => Number(bar.style.getPropertyValue('--share')))"
    )
    rows = rows_of(study.mdp, point.ambiguity, point.robust.value, range(study.mdp.n_states), point.robust.policy)
    found = {names.pair(row): row for row in rows}
    wanted = np.concatenate([found[caption].worst for caption in captions])
    assert shares == pytest.approx(wanted.tolist(), abs=1e-3)


@pytest.mark.parametrize("width", [1280, 360])
def test_it_is_sound_on_any_screen(browser: Any, path: Path, width: int) -> None:
    """Every panel is drawn, the console is silent, nothing is fetched, nothing is wider than the screen."""
    with opened(browser, path, width) as it:
        it.assert_sound()
        assert it.overflow() <= 0
        assert it.page.locator("main h2").count() == 7
        for number in range(7):
            assert it.page.locator("main h2").nth(number).is_visible()
        links = it.page.locator("nav a").evaluate_all("all => all.map(a => document.querySelector(a.hash) !== null)")
        assert links
        assert all(links)


def test_it_begins_at_the_recommended_level(desktop: Opened, analysis: Analysis) -> None:
    assert desktop.page.locator("input[type=range]").get_attribute("value") == str(start(analysis))
    assert desktop.page.locator("output").inner_text().endswith("(recommended)")
    assert_shown(desktop, analysis, start(analysis))


def test_the_keyboard_moves_value_policy_and_bars(desktop: Opened, analysis: Analysis) -> None:
    begun = start(analysis)
    for strokes, number in ((["ArrowLeft"], begun - 1), (["ArrowRight"] * 3, begun + 2), (["Home"], 0), (["End"], 29)):
        press(desktop, *strokes)
        assert_shown(desktop, analysis, number)


@pytest.mark.parametrize(("name", "step"), [("Previous", -1), ("Next", 1)])
def test_buttons_move_it(desktop: Opened, analysis: Analysis, name: str, step: int) -> None:
    begun = start(analysis)
    desktop.page.locator(f".turn button[data-step='{step}']").click()
    settle(desktop)
    assert_shown(desktop, analysis, begun + step)
    assert desktop.page.locator(f".turn button[aria-label^='{name}: ']").count() == 1


def test_the_line_goes_where_the_slider_goes(desktop: Opened) -> None:
    """They ran in opposite directions: to the right, the slider became more robust and the line less."""
    press(desktop, "Home")
    left = desktop.page.evaluate(LINE)
    press(desktop, *["ArrowRight"] * 5)
    assert desktop.page.evaluate(LINE) > left + 5
    press(desktop, "End")
    assert desktop.page.evaluate(LINE) > left + 100


def test_the_ends_say_what_they_are(desktop: Opened, analysis: Analysis) -> None:
    ends = desktop.page.locator(".dial .ends span").all_inner_texts()
    penalized = isinstance(analysis.study.suggestion.ambiguity, rm.Penalized)
    words = ["(most robust)", "(nearly trusting)"] if penalized else ["(nearly trusting)", "(most robust)"]
    assert [end.split(" ", 3)[-1] if penalized else end.split(" ", 2)[-1] for end in ends] == words


def test_the_program_is_copied(desktop: Opened, analysis: Analysis) -> None:
    desktop.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.kept = text; }}})"
    )
    desktop.page.locator("[data-copy]").click()
    desktop.page.locator("[data-copy]", has_text="Copied").wait_for()
    assert desktop.page.evaluate("window.kept") == analysis.code


def test_tables_of_the_stress_test_need_no_scrolling_on_a_desk(desktop: Opened) -> None:
    """A column for each of nature's rooms was wider than any screen; now they are rows."""
    wider = desktop.page.locator("main .scroll").evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")
    assert max(wider) <= 0
