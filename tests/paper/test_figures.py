"""What the figures show: the panels, axes, bands and insets that their captions promise, from the records alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paper import tiny
from robustmdp.engine import Serial
from robustmdp.paper import NAMES, experiment_named, memory
from robustmdp.paper.figures import Curve, Diagram, Figure, Key, Panel
from robustmdp.table import Table

Q_ERROR = "max |Qₜ − Q*|"


def memory_records() -> Table:
    """Made up: to measure takes long."""
    methods = ["algorithm-1", "algorithm-2", "generative", "markovian", "plug-in"]
    rows = [(m, n, 4, 100 * n * (n if m == "plug-in" else 1)) for m in methods for n in (32, 64)]
    names = ("method", "states", "actions", "peak_bytes")
    return Table({name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})


def records(name: str) -> Table:
    return memory_records() if name == "memory" else tiny.records(name)


@pytest.fixture
def figure_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Figure]:
    """Draws without computing: every task refuses."""

    def make(name: str) -> Figure:
        table = records(name)

        def refuse(item: Any) -> Any:
            raise AssertionError("a figure must not compute")

        for experiment in tiny.EXPERIMENTS.values():
            monkeypatch.setitem(vars(experiment), "measure", refuse)
        return experiment_named(name).figure(table)

    return make


def panels(figure: Figure) -> list[Panel]:
    assert all(isinstance(panel, Panel) for panel in figure.panels)
    return [panel for panel in figure.panels if isinstance(panel, Panel)]


def banded(curve: Curve) -> bool:
    assert (curve.low is None) == (curve.high is None)
    return curve.low is not None


def scales(panel: Panel) -> tuple[str, str]:
    return panel.x_scale, panel.y_scale


def labels(panel: Panel) -> tuple[str, str]:
    return panel.x_label, panel.y_label


def assert_drawable(figure: Figure) -> None:
    assert figure.panels
    for panel in figure.panels:
        if isinstance(panel, Diagram):
            continue
        assert panel.curves, f"{figure.name}: nothing in the panel {panel.title!r}"
        for curve in panel.curves:
            assert len(curve.x) == len(curve.y) > 0
            assert np.all(np.diff(curve.x) > 0), "x must rise"
            for numbers in (curve.x, curve.y, curve.low, curve.high):
                assert numbers is None or np.all(np.isfinite(numbers))
            assert panel.x_scale == "linear" or np.all(curve.x > 0)
            assert panel.y_scale == "linear" or np.all(curve.y > 0)
            if curve.low is not None and curve.high is not None:
                assert np.all(curve.low <= curve.y)
                assert np.all(curve.y <= curve.high)
    for text in (figure.title, figure.caption, figure.reading):
        assert text
        assert "nan" not in text.split()
    assert figure.reading.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn_from_finite_numbers_without_computing(name: str, figure_of: Any) -> None:
    figure = figure_of(name)
    assert figure.name == name
    assert_drawable(figure)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("dmin", "connection", "memory")])
def test_titles_name_the_world(name: str, figure_of: Any) -> None:
    assert "p = 0.8" in figure_of(name).title


def test_the_chains_are_drawn_whole(figure_of: Any) -> None:
    final, loop = figure_of("chain-diagrams").panels
    assert [len(diagram.nodes) for diagram in (final, loop)] == [10, 10]
    # Two actions with two successors in nine states; those of the last are drawn once.
    assert [len(diagram.arrows) for diagram in (final, loop)] == [37, 38]
    assert {(arrow.source, arrow.target) for arrow in loop.arrows} == {(s, t) for s in range(9) for t in (s, s + 1)} | {
        (9, 9),
        (9, 0),
    }
    assert {arrow.label for arrow in final.arrows if arrow.source < 9} == {"0.8", "0.2"}


def test_the_connection(figure_of: Any) -> None:
    (panel,) = panels(figure_of("connection"))
    assert labels(panel) == ("λ", "max |V*robust − V*|")
    drawn = sorted((curve.key.value, curve.name, curve.style == "points") for curve in panel.curves)
    assert drawn == [
        (stay, name, points)
        for stay in (0.6, 0.8)
        for name, points in (("Algorithm 3", True), ("exact solution", False))
    ]
    exact = tiny.records("connection").where(stay=0.6, method="exact")
    (curve,) = [curve for curve in panel.curves if curve.key == Key("p", 0.6) and curve.style != "points"]
    assert curve.x.tolist() == list(tiny.WEIGHTS)
    assert curve.y.tolist() == exact["deviation"].tolist()


def test_statistical_errors(figure_of: Any) -> None:
    learning, final, bounds, sizes = panels(figure_of("statistical"))
    assert labels(learning) == ("iterations", "max |Vₜ − V*|")
    assert learning.inset is not None
    assert 0 < learning.inset[0] < learning.inset[1] == 60.0
    assert [curve.key for curve in learning.curves] == [Key("λ", weight) for weight in tiny.WEIGHTS]
    for panel in (learning, final, sizes):
        assert all(banded(curve) for curve in panel.curves)
    assert [curve.x.tolist() for curve in final.curves] == [[weight] for weight in tiny.WEIGHTS]
    assert labels(final)[0] == labels(bounds)[0] == "λ"
    assert (scales(bounds), scales(sizes)) == (("log", "log"), ("log", "log"))
    assert len(bounds.curves) == 4
    measured, *upper = (curve.y for curve in bounds.curves if "lower" not in str(curve.key))
    assert all(np.all(bound > measured) for bound in upper)  # they hold with a probability of 95 % at least
    assert [curve.x.tolist() for curve in sizes.curves] == [[100.0, 1000.0]] * 3
    of = tiny.records("statistical").where(method="algorithm-3", weight=2.0, step=7)
    assert learning.curves[1].y[7] == pytest.approx(of["error"].mean(), rel=1e-15)


def test_convergence(figure_of: Any) -> None:
    left, middle, final, bound = panels(figure_of("convergence"))
    assert labels(left) == labels(middle) == ("iterations", Q_ERROR)
    assert (scales(left), scales(middle)) == (("linear", "linear"), ("linear", "log"))
    assert all(banded(curve) for curve in left.curves)
    assert not any(banded(curve) for curve in middle.curves)
    assert [curve.key for curve in left.curves] == [curve.key for curve in middle.curves]
    assert [curve.x[0] for curve in left.curves] == [0.0] * 3
    assert [(curve.x.tolist(), banded(curve)) for curve in final.curves] == [
        ([weight], True) for weight in tiny.WEIGHTS
    ]
    assert scales(bound) == ("log", "log")
    measured, printed, true = (curve.y for curve in bound.curves)
    assert np.all(printed > 0)
    assert np.all(true > measured)  # the theorem


def test_the_band_is_the_confidence_interval_of_the_mean(figure_of: Any) -> None:
    left, *_ = panels(figure_of("convergence"))
    of = tiny.records("convergence").where(weight=0.5, step=30)["error"]
    at = int(np.flatnonzero(left.curves[0].x == 30)[0])
    margin = 4.302652730 * of.std(ddof=1) / np.sqrt(3)  # t(0.975, 2)
    assert left.curves[0].high[at] - left.curves[0].y[at] == pytest.approx(margin, rel=1e-8)
    assert left.curves[0].y[at] - left.curves[0].low[at] == pytest.approx(margin, rel=1e-8)


def test_inner_steps(figure_of: Any) -> None:
    drawn = panels(figure_of("inner-steps"))
    assert [panel.title for panel in drawn] == ["λ = 10", "λ = 0.5"]
    for panel in drawn:
        assert [curve.key for curve in panel.curves] == [Key("T'", 2), Key("T'", 5)]
        assert all(banded(curve) for curve in panel.curves)
        assert (labels(panel), scales(panel)) == (("iterations", Q_ERROR), ("linear", "log"))


def test_dmin(figure_of: Any) -> None:
    (panel,) = panels(figure_of("dmin"))
    assert labels(panel) == ("π", "d_min")
    assert [curve.key for curve in panel.curves] == [Key("p", 0.6), Key("p", 0.8)]


def test_markovian(figure_of: Any) -> None:
    with_bands, without, *others = panels(figure_of("markovian"))
    ours, literal = others
    assert all(banded(curve) for panel in (with_bands, ours) for curve in panel.curves)
    assert not any(banded(curve) for panel in (without, literal) for curve in panel.curves)
    assert [curve.key for curve in with_bands.curves] == [Key("λ", weight) for weight in tiny.WEIGHTS]
    assert without.title == f"{with_bands.title}, without bands"
    for panel in (with_bands, without, *others):
        assert (labels(panel), scales(panel)) == (("transitions", Q_ERROR), ("linear", "log"))


def test_what_diverged_is_not_in_a_median(figure_of: Any) -> None:
    literal = panels(figure_of("markovian"))[-1]
    table = tiny.records("markovian").where(algorithm="algorithm-2-literal")
    for curve in literal.curves:
        of = table.where(weight=curve.key.value, step=3000)
        assert 0 < len(of) <= 3
        assert curve.y[-1] == np.median(of["error"])


def test_behaviour_has_a_panel_for_each_weight(figure_of: Any) -> None:
    drawn = panels(figure_of("behaviour"))
    assert [panel.title for panel in drawn] == ["λ = 1", "λ = 10"]
    for panel in drawn:
        assert [curve.key for curve in panel.curves] == [Key("π", share) for share in (0.05, 0.2, 0.5)]
        assert all(banded(curve) for curve in panel.curves)
        assert scales(panel) == ("linear", "log")


def test_equivalence(figure_of: Any) -> None:
    penalized, constrained, matching = panels(figure_of("equivalence"))
    assert [labels(panel)[0] for panel in (penalized, constrained, matching)] == ["λ", "ρ", "λ"]
    assert [scales(panel) for panel in (penalized, constrained, matching)] == [("log", "linear")] * 2 + [("log", "log")]
    for curve in penalized.curves:  # the dearer deviations are, the better
        assert np.all(np.diff(curve.y) >= -1e-9)
    for curve in (*constrained.curves, *matching.curves):
        assert np.all(np.diff(curve.y) <= 1e-9)


def test_rates(figure_of: Any) -> None:
    drawn = panels(figure_of("rates"))
    assert [panel.title for panel in drawn] == ["λ = 1", "λ = 10"]
    for panel in drawn:
        assert (labels(panel), scales(panel)) == (("samples", "max |Q − Q*|"), ("log", "log"))
        assert len(panel.curves) == 7
        assert all(banded(curve) for curve in panel.curves)


def test_step_sizes(figure_of: Any) -> None:
    drawn = panels(figure_of("step-sizes"))
    assert [labels(panel)[0] for panel in drawn] == ["inner steps T'"] * 2 + ["iterations T"] * 2
    assert [str(curve.key.value) for curve in drawn[0].curves] == ["the paper's steps", "0.3", "0.7"]
    assert [len(panel.curves) for panel in drawn] == [3, 3, 4, 4]


def test_limits(figure_of: Any) -> None:
    values, gaps = panels(figure_of("limits"))
    same, other = values.curves
    assert same.y[0] < same.y[1]  # probabilities are forgotten as lambda falls
    assert other.y[0] > other.y[1]  # successors are not
    assert [curve.x.tolist() for curve in gaps.curves] == [[1e-3, 1.0, 1e3]] * 2


def test_exploration(figure_of: Any) -> None:
    drawn = panels(figure_of("exploration"))
    assert [panel.title for panel in drawn] == ["chain that returns"] * 2 + ["river swim"] * 2
    assert all(len(panel.curves) == 4 for panel in drawn)
    assert all(banded(curve) for panel in drawn for curve in panel.curves)


def test_sample_efficiency(figure_of: Any) -> None:
    drawn = panels(figure_of("sample-efficiency"))
    assert [panel.title for panel in drawn] == ["chi-square penalty, λ = 1", "KL penalty, λ = 1", "KL ball, ρ = 0.1"]
    assert [len(panel.curves) for panel in drawn] == [10, 10, 8]
    for panel in drawn:
        assert (labels(panel), scales(panel)) == (("samples", "max |Q − Q*|"), ("log", "log"))
        means, fits = panel.curves[::2], panel.curves[1::2]
        assert all(banded(curve) for curve in means)
        assert {curve.style for curve in fits} == {"dotted"}
        # Through two points a power goes exactly.
        assert all(np.allclose(mean.y, fit.y, rtol=1e-9) for mean, fit in zip(means, fits, strict=True))


def test_memory(figure_of: Any) -> None:
    by_pairs, by_transitions = panels(figure_of("memory"))
    assert [labels(panel)[0] for panel in (by_pairs, by_transitions)] == ["|S||A|", "|S|²|A|"]
    assert [scales(panel) for panel in (by_pairs, by_transitions)] == [("log", "log")] * 2
    assert [len(panel.curves) for panel in (by_pairs, by_transitions)] == [5, 1]
    assert by_pairs.curves[0].x.tolist() == [128.0, 256.0]
    assert by_transitions.curves[0].x.tolist() == [4096.0, 16384.0]
    assert {str(curve.key) for curve in by_pairs.curves} == set(memory._NAMES.values())


# What users may ask for.


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("sample-efficiency", {"budgets": (3000,)}),
        ("sample-efficiency", {"budgets": (10_000, 3000)}),
        ("statistical", {"sizes": (100,)}),
        ("statistical", {"sizes": (1000, 100), "weights": (10.0, 0.5)}),
        ("statistical", {"seeds": 1, "divergence": "kl"}),
        ("dmin", {"behaviours": (0.5, 0.1, 0.9)}),
        ("dmin", {"behaviours": (0.5,)}),
        ("connection", {"weights": (5.0, 1.0), "divergence": "tv"}),
        ("convergence", {"seeds": 1, "weights": (2.0,)}),
        ("convergence", {"divergence": "hellinger"}),
        ("inner-steps", {"inner_levels": (5, 2), "weights": (1.0,)}),
        ("markovian", {"weights": (0.5, 1.0)}),  # every run to the letter diverges
        ("markovian", {"divergence": "kl", "weights": (10.0,)}),  # there is none to the letter
        ("behaviour", {"behaviours": (0.5, 0.2)}),
        ("equivalence", {"levels": 1, "divergences": ("burg",)}),
        ("equivalence", {"divergences": ("cr:3",)}),
        ("chain-diagrams", {"stay": (0.3,), "restart": 0.1}),
    ],
    ids=str,
)
def test_other_parameters_are_drawn_and_judged_too(name: str, changed: dict[str, Any]) -> None:
    experiment = experiment_named(name)
    made = experiment.run(tiny.params(name, **changed), Serial())
    for claim in experiment.check(made):
        assert claim.finding.test
    assert_drawable(experiment.figure(made))


@pytest.mark.parametrize(
    ("name", "field", "twice"),
    [
        ("connection", "weights", (1.0, 1.0)),
        ("statistical", "weights", (1.0, 2.0, 1.0)),
        ("statistical", "sizes", (100, 100)),
        ("convergence", "stay", (0.8, 0.8)),
        ("inner-steps", "inner_levels", (5, 5)),
        ("behaviour", "behaviours", (0.5, 0.5)),
        ("equivalence", "divergences", ("kl", "kl")),
        ("sample-efficiency", "budgets", (3000, 3000)),
    ],
)
def test_a_value_given_twice_is_no_further_replication(name: str, field: str, twice: Any) -> None:
    # Its rows would count as other seeds, and every interval would be too narrow.
    with pytest.raises(ValueError, match=field):
        tiny.params(name, **{field: twice})
