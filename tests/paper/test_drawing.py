"""Pictures: PNG and SVG, not blank, on the scales asked for, equal for equal figures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from paper import samples
from robustmdp.paper import drawing
from robustmdp.paper.drawing import draw, palette_of
from robustmdp.paper.figures import Curve, Diagram, Figure, Key, Panel, keys_of

FIGURES = [samples.learning(), samples.styles(), samples.chain(), samples.hostile()]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_pictures_are_written_and_not_blank(figure: Figure, tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    png, svg = draw(figure, tmp_path / "new", palette_of([figure]))
    assert (png.name, svg.name) == (f"{figure.name}.png", f"{figure.name}.svg")
    pixels = matplotlib.image.imread(png)
    assert min(pixels.shape[:2]) > 300
    assert 0.005 < np.mean(pixels[..., :3].min(axis=-1) < 0.9) < 0.7
    assert svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not mpl._pylab_helpers.Gcf.figs


def test_equal_figures_give_equal_files(tmp_path: Path) -> None:
    figure = samples.learning()
    one = draw(figure, tmp_path / "one", palette_of([figure]))
    other = draw(samples.learning(), tmp_path / "other", palette_of([figure]))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def painted(figure: Figure) -> Canvas:
    canvas = Canvas()
    drawing._paint(canvas, figure, palette_of([figure]))
    return canvas


def test_scales_labels_and_insets_are_honoured() -> None:
    linear, log = painted(samples.learning()).axes
    assert (linear.get_yscale(), log.get_yscale(), log.get_xscale()) == ("linear", "log", "linear")
    assert (log.get_xlabel(), log.get_ylabel(), log.get_title()) == ("samples", "error", "on a logarithmic axis")
    (inset,) = linear.child_axes
    assert inset.get_xlim() == (8e5, 1e6)
    bottom, top = inset.get_ylim()
    assert -0.2 < bottom < 0.1 < top < 0.4


def test_legends_list_keys_in_order_and_styles_by_name() -> None:
    (legend,) = painted(samples.learning((10.0, 0.5, 2.0))).legends
    assert [text.get_text() for text in legend.get_texts()] == ["λ = 0.5", "λ = 2", "λ = 10"]
    (legend,) = painted(samples.styles()).legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two", "literal", "fit", "bound", "seen", "mean"]


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("y", [[], [np.nan, np.nan], [np.nan, 1.0], [0.0, -1.0], [2.0, 2.0], [np.inf, 1e-300]])
def test_awkward_numbers_are_drawn_or_left_out(y: list[float], scale: str, tmp_path: Path) -> None:
    values = np.array(y)
    curve = Curve(Key("λ", 1.0), np.arange(len(y), dtype=float), values, values, values)
    panel = Panel("awkward", "x", "y", (curve,), scale, scale, inset=(0.0, 1.0) if scale == "linear" else None)  # type: ignore[arg-type]
    figure = Figure("awkward", "", "", "", (panel,))
    assert all(path.stat().st_size for path in draw(figure, tmp_path, palette_of([figure])))


def test_one_interval_on_a_logarithmic_axis_is_drawn(tmp_path: Path) -> None:
    # A reproduction with one lambda; Matplotlib warned, and a warning is an error here.
    curve = Curve(Key("λ", 10.0), np.array([10.0]), np.array([0.2]), np.array([0.1]), np.array([0.3]), "points")
    figure = Figure("one", "", "", "", (Panel("one", "λ", "error", (curve,), "log"),))
    assert all(path.stat().st_size for path in draw(figure, tmp_path, palette_of([figure])))


def test_figures_of_many_panels_fill_rows(tmp_path: Path) -> None:
    learning, world = samples.learning(), samples.chain().panels[0]
    panels: tuple[Panel | Diagram, ...] = (learning.panels[0], world, *(learning.panels * 2))
    figure = replace(learning, panels=panels)
    assert len(painted(figure).axes) == len(panels)


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=r"^matplotlib must be installed for figures: pip install 'robustmdp\[plot\]'$"
    ):
        draw(samples.chain(), tmp_path, palette_of([samples.chain()]))


def test_equal_keys_have_one_colour_and_keys_that_meet_differ() -> None:
    figures = [samples.learning(), samples.styles(), samples.chain(), samples.learning((1.0, 7.0))]
    palette = palette_of(figures)
    for figure in figures:
        inks = [palette[key] for key in keys_of(figure)]
        assert len({ink.colour for ink in inks}) == len(inks)
    assert list(palette) == list(dict.fromkeys(palette))


def test_weights_brighten_in_order() -> None:
    palette = palette_of([samples.learning()])
    shades = [sum(bytes.fromhex(palette[Key("λ", weight)].colour[1:])) for weight in samples.WEIGHTS]
    assert shades == sorted(shades)
