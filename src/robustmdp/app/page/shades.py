"""From low to high as colour: pale to dark in even steps, in order for every eye and on paper without colour."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robustmdp.app.page.colours import blend, contrast

_ANCHORS = ("#fbf6e3", "#bcd8c6", "#72b2bb", "#3f7fa8", "#2a5390", "#1c2a63")
SHADES = tuple(blend(_ANCHORS, 64))  # more cannot be told apart
RAMP = f"linear-gradient(to right, {', '.join(_ANCHORS)})"


@dataclass(frozen=True)
class Scale:
    """The colours of numbers from `low` to `high`; what lies beyond has the colour of that end.

    >>> scale = Scale(0.0, 10.0)
    >>> scale.colour(0.0), scale.colour(10.0), scale.colour(11.0)
    ('#fbf6e3', '#1c2a63', '#1c2a63')
    """

    low: float
    high: float

    def colour(self, value: float) -> str:
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return SHADES[round((len(SHADES) - 1) * min(max(share, 0.0), 1.0))]

    def digits(self, value: float) -> str:
        """A number as short as the scale allows: some hundred steps from end to end, in about eight characters at most.

        >>> Scale(0.0, 1.0).digits(0.5), Scale(-120.0, 3.0).digits(-7.25), Scale(0.0, 1e9).digits(123456789.0)
        ('0.50', '-7', '1.2e+08')
        """
        span = self.high - self.low or abs(self.low) or 1.0
        decimals = min(max(math.ceil(1.7 - math.log10(span)), 0), 6)
        text = f"{round(value, decimals) + 0.0:.{decimals}f}"  # adding zero takes the sign off it
        return text if len(text) <= 8 and decimals < 6 else f"{value:.2g}"


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read there: at least 4.5:1 on any colour.

    >>> ink_on("#fbf6e3"), ink_on("#1c2a63")
    ('#000', '#fff')
    """
    on_white = contrast(colour)
    return "#fff" if on_white > 21 / on_white else "#000"
