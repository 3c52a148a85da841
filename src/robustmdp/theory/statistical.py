"""Theorem 3.2: how far the solution of an estimated model is from the truth, with a chi-square penalty.

Rewards lie in [0, 1] and are known; n successors are drawn for each of the S A pairs.
"""

from __future__ import annotations

import math
from typing import Literal

from robustmdp import _checks, _types
from robustmdp.theory import _arguments


def statistical_upper_bound(
    samples_per_pair: int,
    *,
    n_pairs: int,
    discount: float,
    weight: float,
    delta: float = 0.05,
    form: Literal["sharp", "proved", "printed"] = "sharp",
) -> float:
    """With probability 1 - delta, ||V_estimated - V*|| is at most this (Theorem 3.2, upper bound).

    With H = 1/(1-discount) and c = 16 discount H max(H^2/weight, weight):

    - "printed": c sqrt(log(2 S A N/delta)/(2n)), N = 1 + 8 max(H/weight, 1) sqrt(2n), the proof's last line;
    - "proved": c (1 + sqrt(log(2 S A N/delta)))/sqrt(2n). The last line drops the 1, the cost of the net of N points;
    - "sharp", ours: discount H^2 (1 + 3 H/(4 weight)) sqrt(log(4 S A/delta)/(2n)). With the tight interval [0, H] no
      net is needed: the empirical J_n is concave, so J_n(eta*) <= sup J_n <= J_n(eta*) + H |J_n'(eta*)|, where
      E J_n'(eta*) = 0, and Hoeffding's inequality at the one point eta* does the rest. It falls with the weight to the
      nominal rate, while the paper's grows without bound.

    No error exceeds H: a bound above it says nothing.

    >>> large = dict(n_pairs=20, discount=0.9, weight=10.0)
    >>> [round(statistical_upper_bound(10**6, form=form, **large), 2) for form in ("sharp", "proved", "printed")]
    [0.3, 5.09, 4.08]
    """
    _types.check_arguments(statistical_upper_bound, locals())
    n, pairs = (
        _checks.positive_integer("samples_per_pair", samples_per_pair),
        _checks.positive_integer("n_pairs", n_pairs),
    )
    discount, weight = _checks.discount(discount), _arguments.positive("weight", weight)
    delta = _arguments.fraction("delta", delta)
    _arguments.one_of("form", form, ("sharp", "proved", "printed"))
    largest_value = 1.0 / (1.0 - discount)
    if form == "sharp":
        scale = discount * largest_value**2 * (1.0 + 0.75 * largest_value / weight)
        return scale * math.sqrt(math.log(4.0 * pairs / delta) / (2.0 * n))
    scale = 16.0 * discount * largest_value * max(largest_value**2 / weight, weight)
    net = 1.0 + 8.0 * max(largest_value / weight, 1.0) * math.sqrt(2.0 * n)
    deviation = math.sqrt(math.log(2.0 * pairs * net / delta))
    return scale * (deviation + (form == "proved")) / math.sqrt(2.0 * n)


def statistical_lower_bound(epsilon: float, *, n_pairs: int, discount: float, weight: float) -> float:
    """Samples in all that any method needs for an error of epsilon (Theorem 3.2, lower bound), in order only.

    With h = 1 - discount: S A weight^2/(epsilon^2 h^3) for weight < h/(discount (3 - 2 discount)), otherwise
    S A/(epsilon^2 h^3) min(1/16, weight discount h/(2 discount - 1)). The theorem leaves an absolute constant and
    logarithms open; its proof needs a discount in (3/4, 1).

    >>> statistical_lower_bound(0.5, n_pairs=20, discount=0.875, weight=1.0)
    2560.0
    """
    _types.check_arguments(statistical_lower_bound, locals())
    epsilon, weight = _arguments.positive("epsilon", epsilon), _arguments.positive("weight", weight)
    pairs, discount = _checks.positive_integer("n_pairs", n_pairs), _checks.discount(discount)
    _checks.must(discount > 0.75, f"discount must lie in (3/4, 1) for the lower bound: got {discount:g}")
    rest = 1.0 - discount
    rate = pairs / (epsilon * epsilon * rest**3)
    if weight < rest / (discount * (3.0 - 2.0 * discount)):
        return rate * weight**2
    return rate * min(1.0 / 16.0, weight * discount * rest / (2.0 * discount - 1.0))
