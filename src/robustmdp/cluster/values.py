"""A vector of values that the shards hold."""

from __future__ import annotations

from functools import cached_property

from robustmdp.cluster.machine import Machine, Pair


class Handle:
    """What the shards keep under a number, as long as somebody here refers to it."""

    def __init__(self, machine: Machine, kind: str) -> None:
        self.machine = machine
        self.number = machine.new(kind)

    def __del__(self) -> None:
        self.machine.drop(self.number)


class Values(Handle):
    """One value for each state, which is used like an array: planning does not know the difference."""

    __array_ufunc__ = None  # a number of NumPy must not take it apart

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, "values")

    def _computed(self, how: str, x: Values | float, y: Values | float) -> Values:
        out = Values(self.machine)
        operands = (each.number if isinstance(each, Values) else float(each) for each in (x, y))
        self.machine.do("compute", how, out.number, *operands)
        return out

    def __add__(self, other: Values | float) -> Values:
        return self._computed("add", self, other)

    def __radd__(self, other: float) -> Values:
        return self._computed("add", other, self)

    def __sub__(self, other: Values | float) -> Values:
        return self._computed("subtract", self, other)

    def __rsub__(self, other: float) -> Values:
        return self._computed("subtract", other, self)

    def __mul__(self, other: Values | float) -> Values:
        return self._computed("multiply", self, other)

    def __rmul__(self, other: float) -> Values:
        return self._computed("multiply", other, self)

    def __abs__(self) -> Size:
        return Size(self)

    def copy(self) -> Values:
        """Itself: it never changes."""
        return self

    @cached_property
    def _range(self) -> Pair:
        return self.machine.ask_range(self.number)

    def min(self) -> float:
        """The least value."""
        return self._range[0]

    def max(self) -> float:
        """The largest value."""
        return self._range[1]


class Size:
    """The absolute values of a vector, of which the largest alone is known."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def max(self) -> float:
        """The largest one."""
        return max(abs(self._values.min()), abs(self._values.max()))
