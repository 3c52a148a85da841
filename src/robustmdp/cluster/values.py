"""A vector of values that the shards hold."""

from __future__ import annotations

from functools import cached_property

from robustmdp.cluster.driver import Driver, Pair


class Handle:
    """What the shards keep under a number, until this object is deleted."""

    def __init__(self, driver: Driver, kind: str) -> None:
        self.driver = driver
        self.number = driver.new_vector(kind)

    def __del__(self) -> None:
        self.driver.drop(self.number)


class Values(Handle):
    """One value per state, with the arithmetic of an array that planning uses."""

    __array_ufunc__ = None  # arithmetic with a number of NumPy is that of this class

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver, "values")

    def _compute(self, operation: str, x: Values | float, y: Values | float) -> Values:
        out = Values(self.driver)
        operands = (each.number if isinstance(each, Values) else float(each) for each in (x, y))
        self.driver.add("compute", operation, out.number, *operands)
        return out

    def __add__(self, other: Values | float) -> Values:
        return self._compute("add", self, other)

    def __radd__(self, other: float) -> Values:
        return self._compute("add", other, self)

    def __sub__(self, other: Values | float) -> Values:
        return self._compute("subtract", self, other)

    def __rsub__(self, other: float) -> Values:
        return self._compute("subtract", other, self)

    def __mul__(self, other: Values | float) -> Values:
        return self._compute("multiply", self, other)

    def __rmul__(self, other: float) -> Values:
        return self._compute("multiply", other, self)

    def __abs__(self) -> AbsoluteValues:
        return AbsoluteValues(self)

    def copy(self) -> Values:
        """Itself, since it is immutable."""
        return self

    @cached_property
    def _range(self) -> Pair:
        return self.driver.range(self.number)

    def min(self) -> float:
        """The least value."""
        return self._range[0]

    def max(self) -> float:
        """The largest value."""
        return self._range[1]


class AbsoluteValues:
    """The absolute values of a vector, of which only the largest is computed."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def max(self) -> float:
        """The largest one."""
        return max(abs(self._values.min()), abs(self._values.max()))
