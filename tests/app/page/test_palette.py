"""Colours: one for each key, distinct for every eye, dark enough for thin lines."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from app.page import samples
from robustmdp.app.page import Arrow, Curve, Diagram, Figure, Key, Node, Palette, Panel
from robustmdp.app.page.colours import SEQUENCE, WORDS, Ink, contrast

# Linear RGB as dichromats see it (Viénot, Brettel and Mollon, 1999).
EYES = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deuteranopia": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


def lab(colour: str, eye: str) -> np.ndarray:
    """CIELAB, in which 2.3 is a just noticeable difference."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.clip(EYES[eye] @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    ratio = xyz / (0.9505, 1.0, 1.089)
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def figure_of(*keys: Key, name: str = "figure") -> Figure:
    curves = tuple(Curve(key, np.array([0.0, 1.0]), np.array([0.0, 1.0])) for key in keys)
    return Figure(name, "", "", "", (Panel("", "x", "y", curves),))


def weights(*values: float) -> list[Key]:
    return [Key("λ", value) for value in values]


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("colours", [SEQUENCE, WORDS])
def test_colours_are_far_apart_for_every_eye(colours: tuple[str, ...], eye: str) -> None:
    for one, other in combinations(colours, 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 20


def test_weights_stay_in_order_in_greyscale() -> None:
    lightness = [lab(colour, "normal")[0] for colour in SEQUENCE]
    assert min(np.diff(lightness)) > 4


@pytest.mark.parametrize("colour", [*SEQUENCE, *WORDS])
def test_lines_and_labels_stand_out_from_white(colour: str) -> None:
    assert contrast(colour) >= 3
    assert contrast(Ink(colour, "circle").text) >= 4.5


def test_the_usual_weights_always_have_the_same_colours() -> None:
    all_seven = Palette.of([figure_of(*weights(*samples.WEIGHTS))])
    assert [all_seven[key].colour for key in weights(*samples.WEIGHTS)] == list(SEQUENCE)
    few = Palette.of([figure_of(*weights(10, 7, 0.01)), figure_of(Key("π", 0.5), *weights(3, np.float64(0.5)))])
    for key in weights(10, 3, 0.5):
        assert few[key] == all_seven[key]


@pytest.mark.parametrize(
    "values", [(0.1, 0.2, 0.3), (*samples.WEIGHTS, 7.0, 20.0, np.inf), tuple(np.linspace(0, 1, 30))]
)
def test_other_weights_get_colours_of_their_own_in_order(values: tuple[float, ...]) -> None:
    palette = Palette.of([figure_of(*weights(*values))])
    colours = [palette[key].colour for key in weights(*values)]
    assert len(set(colours)) == len(values)
    assert min(map(contrast, colours)) >= 2.9
    others = [palette[key].colour for key in weights(*sorted(set(values) - set(samples.WEIGHTS)))]
    lightness = [lab(colour, "normal")[0] for colour in others]
    assert lightness == sorted(lightness)


def test_keys_that_meet_differ_and_keep_their_colours() -> None:
    words = [Key("algorithm", f"algorithm {k}") for k in range(6)]
    divergences = [Key("divergence", name) for name in ("kl", "chi2", "burg")]
    numbers = [Key("π", 0.1), Key("π", 0.5), Key("T'", 10.0), Key("T'", 100.0)]
    figures = [figure_of(*words), figure_of(*divergences, *numbers), figure_of(words[0], *numbers, *weights(0.5, 10))]
    palette = Palette.of(figures)
    for figure in figures:
        keys = [curve.key for panel in figure.panels if isinstance(panel, Panel) for curve in panel.curves]
        assert len({palette[key].colour for key in keys}) == len(keys)


def test_many_keys_still_differ() -> None:
    keys = [Key("seed", f"{k}") for k in range(24)]
    palette = Palette.of([figure_of(*keys)])
    assert len({palette[key].colour for key in keys}) == 24


def test_the_first_action_is_red_and_the_second_blue_whatever_came_before() -> None:
    one, two = Key("action", "action 1"), Key("action", "action 2")
    world = Diagram("", (Node("s", 0, 0),), (Arrow(0, 0, "", one, 1.0), Arrow(0, 0, "", two, -1.0)))
    before = figure_of(*(Key("algorithm", name) for name in "abc"))
    palette = Palette.of([before, Figure("world", "", "", "", (world,))])
    assert (palette[one].colour, palette[two].colour) == WORDS[:2]


def test_a_key_without_colour_is_named() -> None:
    with pytest.raises(ValueError, match=r"the palette must hold every key of a figure: λ = 2 has no colour"):
        Palette.of([])[Key("λ", 2.0)]
