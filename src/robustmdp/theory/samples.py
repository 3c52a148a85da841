"""The practical question: how many samples are enough?"""

from __future__ import annotations

from functools import partial
from typing import Literal

from robustmdp import _checks, _types
from robustmdp.divergences import ChiSquare
from robustmdp.theory import _arguments
from robustmdp.theory.chains import Mixing, Occupancy
from robustmdp.theory.constants import dual_interval, gradient_bound, outcome_bound
from robustmdp.theory.generative import generative_samples
from robustmdp.theory.markovian import MarkovianSetting, markovian_bound
from robustmdp.theory.statistical import statistical_upper_bound


def samples_needed(
    epsilon: float,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    weight: float,
    delta: float = 0.05,
    method: Literal["plug-in", "generative", "markovian"] = "plug-in",
    occupancy: Occupancy | tuple[float, float] | None = None,
    mixing: Mixing | tuple[float, float] | None = None,
) -> int:
    """Transitions in all that are enough for an error of epsilon in the worst world of this size, chi-square penalty.

    - "plug-in": estimate the model, solve it; error of V at most epsilon with probability 1 - delta
      (Theorem 3.2, `statistical_upper_bound` in its sharp form);
    - "generative": Algorithm 1; expected error of Q at most epsilon (Theorem 4.2, proved form, tight Theta);
    - "markovian": Algorithm 2; expected error of Q at most epsilon (Theorem 5.1, `markovian_bound`), given the
      `occupancy` and the `mixing` of the behaviour policy's chain.

    Rewards lie in [0, 1]; for rewards in [a, b] divide epsilon and the weight by b - a first. `delta` is used by
    "plug-in" alone. These are guarantees, not forecasts: on the paper's chain (weight 1) the plug-in's error is about
    200 times smaller than its bound, so that 40,000 times fewer samples do. The numbers for the two learners, of order
    epsilon^-4 and epsilon^-3 with huge constants, are out of reach, although the learners are not.

    >>> small = dict(n_states=10, n_actions=2, discount=0.9, weight=1.0)
    >>> samples_needed(1.0, **small), samples_needed(0.5, **small)
    (43176500, 172705960)
    """
    _types.check_arguments(samples_needed, locals())
    epsilon = _arguments.positive("epsilon", epsilon)
    pairs = _checks.positive_integer("n_states", n_states) * _checks.positive_integer("n_actions", n_actions)
    discount, weight = _checks.discount(discount), _arguments.positive("weight", weight)
    _arguments.one_of("method", method, ("plug-in", "generative", "markovian"))
    if method == "plug-in":
        error = partial(statistical_upper_bound, n_pairs=pairs, discount=discount, weight=weight, delta=delta)
        return pairs * _arguments.smallest_count(error, epsilon)
    if method == "generative":
        values = 0.0, 1.0 / (1.0 - discount)
        theta = dual_interval(ChiSquare(), weight, values)
        return generative_samples(
            epsilon,
            n_pairs=pairs,
            discount=discount,
            diameter=theta[1] - theta[0],
            gradient_bound=gradient_bound(ChiSquare(), weight, values, theta),
            outcome_bound=outcome_bound(ChiSquare(), weight, values, theta),
            form="proved",
        ).total
    if occupancy is None or mixing is None:
        _checks.fail("occupancy and mixing must be given for the markovian method: they say how the chain moves")
    setting = MarkovianSetting.chi_square(weight, discount, pairs, occupancy, mixing)
    return _arguments.smallest_count(lambda steps: markovian_bound(steps, setting), epsilon)
