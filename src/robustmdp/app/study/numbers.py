"""Numbers as a report prints them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_DIGITS = 4


def short(number: float, digits: int = _DIGITS) -> str:
    """The digits that count, without an exponent where the number can be read.

    >>> short(3337.4), short(-29.1), short(0.000123456), short(-0.0), short(1.1e-5)
    ('3,337', '-29.10', '0.0001235', '0', '1.1e-05')
    """
    size = abs(number)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e7:
        return f"{number:.3g}"
    return f"{number:,.{max(0, decimals(size, digits))}f}"


def decimals(size: float, digits: int = _DIGITS) -> int:
    """How many decimals leave so many digits of a number of this size; negative ones round before the point.

    >>> decimals(0.25), decimals(-29.1)
    (4, 2)
    """
    return digits - 1 - math.floor(math.log10(abs(size))) if size and math.isfinite(size) else 0


def interval(low: float, high: float) -> str:
    """Two bounds with the digits in which they differ, rounded outwards.

    >>> interval(-29.10189123, -29.10188747)
    '-29.1018913 and -29.1018874'
    """
    apart = high - low
    places = min(max(1 - math.floor(math.log10(apart)), 0), 12) if apart > 0 else 6
    unit = 10.0**places
    ends = (math.floor(low * unit) / unit, math.ceil(high * unit) / unit)
    return " and ".join(f"{end + 0.0:.{places}f}" for end in ends)


def alike(numbers: npt.ArrayLike, digits: int = _DIGITS) -> list[float]:
    """Rounded as their largest is, so that none pretends to more than it says beside the others.

    >>> alike([0.46414, 6.565e-08])
    [0.4641, 0.0]
    """
    array = np.asarray(numbers, dtype=np.float64)
    places = decimals(float(np.abs(array).max(initial=0.0)), digits)
    return [float(number) + 0.0 for number in np.round(array, places)]
