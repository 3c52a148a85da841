"""The page in a browser: the slider moves values, policy and bars, and what it shows is what was computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from app.page.browser import Opened, chromium, opened
from robustmdp.app.commands.environments import layout_of
from robustmdp.app.study import Analysis
from robustmdp.app.study.names import short
from robustmdp.app.study.nature import rows_of
from robustmdp.app.study.study import Sweep

# Where the dashed line of the first plot stands, in pixels.
LINE = "dial => Number(dial.querySelector('.plot .shapelayer path').getAttribute('d').match(/^M([-\\d.]+)/)[1])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as it:
        yield it


@pytest.fixture(scope="module")
def lake() -> Analysis:
    """Places, arrows, held-out worlds in which a radius pays by far more than ties between actions are worth."""
    env = gymnasium.make("FrozenLake-v1", map_name="8x8")
    worlds = rm.worlds.environments("FrozenLake8x8-v1", 0.99, success_rate=[0.4, 0.6, 0.8, 0.9])
    return rm.analyse(
        rm.MDP.from_gymnasium(env, 0.99), held_out=worlds, initial=0, layout=layout_of(env), title="A lake"
    )


@pytest.fixture(scope="module")
def machine() -> Analysis:
    """A table of states, and no data to decide by."""
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


@pytest.fixture(params=["radius", "weight"])
def explored(request: pytest.FixtureRequest, window: Opened, analysis: Analysis) -> Iterator[Explored]:
    """A slider as it is when the page is opened."""
    found = [sweep for sweep in analysis.study.sweeps if sweep.name == request.param]
    if not found:
        pytest.skip("a penalty has no slider over radii")
    it = Explored(window, analysis, found[0])
    it.press("Home", *["ArrowRight"] * it.start)
    yield it
    assert window.complaints == []


@dataclass
class Explored:
    """A slider of a page, and what it is to show."""

    window: Opened
    analysis: Analysis
    sweep: Sweep

    @property
    def element(self) -> Any:
        return self.window.page.locator(f"#levels-{self.sweep.name}")

    @property
    def said(self) -> str:
        text: str = self.element.locator("output").inner_text()
        return text

    @property
    def line(self) -> float:
        place: float = self.element.evaluate(LINE)
        return place

    @property
    def order(self) -> list[int]:
        """The places of the levels, from left to right."""
        return sorted(range(len(self.sweep.points)), key=lambda place: self.sweep.points[place].level)

    @property
    def start(self) -> int:
        """Where the slider is to stand at first."""
        return self.order.index(self.sweep.shown)

    def settle(self) -> None:
        self.window.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, *strokes: str) -> None:
        self.element.locator("input[type=range]").focus()
        for stroke in strokes:
            self.window.page.keyboard.press(stroke)
        self.settle()

    def assert_shown(self, number: int) -> None:
        """Value, policy and bars of the level at this place of the slider, and of no other."""
        analysis, study = self.analysis, self.analysis.study
        place = self.order[number]
        point = self.sweep.points[place]
        assert self.said.startswith(self.sweep.text(place))
        frame = self.element.locator(".frame.current")
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
            frame.locator(f"tbody tr {column}").all_inner_texts() for column in ("th", "td:nth-child(3)")
        )
        count = analysis.study.mdp.n_states
        return {name.removeprefix("◆ "): action for name, action in zip(states[:count], actions[:count], strict=True)}
    cells = frame.locator(".cells i").evaluate_all("all => all.map(cell => cell.title)")
    titles = [title.split(": ") for title in cells if ": " in title]
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
    found = {names.bars(row)["title"]: row for row in rows}
    wanted = np.concatenate([found[caption].worst for caption in captions])
    assert shares == pytest.approx(wanted.tolist(), abs=1e-3)


@pytest.mark.parametrize("width", [1280, 360])
def test_it_is_sound_on_any_screen(browser: Any, path: Path, width: int) -> None:
    """Every panel is drawn, the console is silent, nothing is fetched, nothing is wider than the screen."""
    with opened(browser, path, width) as it:
        it.assert_sound()
        assert it.overflow() <= 0
        assert it.page.locator("main h2").count() == 8
        for number in range(8):
            assert it.page.locator("main h2").nth(number).is_visible()
        links = it.page.locator("nav a").evaluate_all("all => all.map(a => document.querySelector(a.hash) !== null)")
        assert links
        assert all(links)


def test_it_begins_at_the_selected_level(explored: Explored) -> None:
    value = explored.element.locator("input[type=range]").get_attribute("value")
    assert value == str(explored.start)
    mark = "(recommended)" if explored.analysis.study.recommended else "(selected)"
    assert explored.said.endswith(mark) == (explored.sweep.place is not None)
    explored.assert_shown(explored.start)


def test_the_keyboard_moves_value_policy_and_bars(explored: Explored) -> None:
    begun = explored.start
    for strokes, number in ((["ArrowLeft"], begun - 1), (["ArrowRight"] * 3, begun + 2), (["Home"], 0), (["End"], 29)):
        explored.press(*strokes)
        explored.assert_shown(number)


@pytest.mark.parametrize(("name", "step"), [("Previous", -1), ("Next", 1)])
def test_buttons_move_it(explored: Explored, name: str, step: int) -> None:
    begun = explored.start
    explored.element.locator(f".turn button[data-step='{step}']").click()
    explored.settle()
    explored.assert_shown(begun + step)
    assert explored.element.locator(f".turn button[aria-label^='{name}: ']").count() == 1


def test_the_line_goes_where_the_slider_goes(explored: Explored) -> None:
    """They ran in opposite directions: to the right, the slider became more robust and the line less."""
    explored.press("Home")
    left = explored.line
    explored.press(*["ArrowRight"] * 5)
    assert explored.line > left + 5
    explored.press("End")
    assert explored.line > left + 100


def test_the_ends_say_what_they_are(explored: Explored) -> None:
    ends = explored.element.locator(".dial .ends span").all_inner_texts()
    words = ["(hardly robust)", "(most robust)"]
    assert [end[end.index("(") :] for end in ends] == (words[::-1] if explored.sweep.name == "weight" else words)


def test_each_slider_moves_alone(lake: Analysis, browser: Any, tmp_path: Path) -> None:
    with opened(browser, lake.write(tmp_path / "page.html")) as it:
        radii, weights = (Explored(it, lake, sweep) for sweep in lake.study.sweeps)
        before = radii.said, radii.line
        weights.press("Home")
        assert weights.said.startswith(weights.sweep.text(29))
        assert (radii.said, radii.line) == before


def test_the_program_is_copied(window: Opened, analysis: Analysis) -> None:
    window.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.kept = text; }}})"
    )
    window.page.locator("[data-copy]").click()
    window.page.locator("[data-copy]", has_text="Copied").wait_for()
    assert window.page.evaluate("window.kept") == analysis.code


@pytest.mark.parametrize("width", [1280, 390])
def test_no_table_scrolls_sideways(browser: Any, path: Path, width: int) -> None:
    """Those of policies had more columns than a telephone has room for."""
    with opened(browser, path, width) as it:
        wider = it.page.locator("main .scroll").evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")
        assert max(wider) <= 0


def test_on_a_phone_many_columns_become_a_list(browser: Any, path: Path) -> None:
    """Each cell with the name of its column, one below the other; few columns stay a table."""
    with opened(browser, path, 390) as it:
        wide = it.page.locator(".wide table")
        names = wide.first.locator("thead th").all_text_contents()
        cells = wide.first.locator("tbody tr").last.locator("td:not(:empty)")
        assert not wide.first.locator("thead").is_visible()
        labels = cells.evaluate_all("all => all.map(cell => getComputedStyle(cell, '::before').content)")
        assert len(labels) >= 3
        assert [label.strip('"') for label in labels] == [name for name in names if f'"{name}"' in labels]
        tops = cells.evaluate_all("all => all.map(cell => cell.getBoundingClientRect().top)")
        assert tops == sorted(set(tops))
        assert it.page.locator(".scroll:not(.wide) thead").first.is_visible()
