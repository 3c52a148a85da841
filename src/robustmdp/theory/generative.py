"""Section 4: convergence of Algorithm 1 with a generative model."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal, NamedTuple

from robustmdp import _checks, _types
from robustmdp.theory import _arguments


def inner_rate(
    inner_steps: int,
    *,
    diameter: float,
    gradient_bound: float,
    n_pairs: int = 1,
    form: Literal["printed", "proved"] = "printed",
) -> float:
    """Theorem 4.1: E max over (s, a) of sup J - J(eta_T) <= diam(Theta) C_g (2 + log T) factor/sqrt(T).

    The step is diam(Theta)/(C_g sqrt t), t = 1, 2, ...

    - "printed": factor = 4 sqrt(2 log(S A)) + 1. Its proof loses a factor of sqrt(T) in the maximum over pairs: the
      second martingale's deviation is of order 1/sqrt(T) *before* it is divided by the last step, not after;
    - "proved": factor = S A. The proof holds in expectation for each pair, and a maximum is at most the sum.

    Both have the factor 1 for one pair.

    >>> inner_rate(1, diameter=3.0, gradient_bound=2.0)
    12.0
    """
    _types.check_arguments(inner_rate, locals())
    steps = _checks.positive_integer("inner_steps", inner_steps)
    pairs = _checks.positive_integer("n_pairs", n_pairs)
    scale = _arguments.positive("diameter", diameter) * _arguments.positive("gradient_bound", gradient_bound)
    _arguments.one_of("form", form, ("printed", "proved"))
    factor = pairs if form == "proved" else 4.0 * math.sqrt(2.0 * math.log(pairs)) + 1.0
    return scale * (2.0 + math.log(steps)) * factor / math.sqrt(steps)


def noise_constant(n_pairs: int, discount: float, outcome_bound: float) -> float:
    """C_N = 2 sqrt(2 (1 + discount C_M)^2 log(2 S A)) (Lemma 4.2), for S A >= 2.

    >>> round(noise_constant(20, 0.9, 10.0), 3)
    54.324
    """
    _types.check_arguments(noise_constant, locals())
    pairs = _checks.positive_integer("n_pairs", n_pairs)
    largest = 1.0 + _checks.discount(discount) * _arguments.positive("outcome_bound", outcome_bound)
    return 2.0 * largest * math.sqrt(2.0 * math.log(2.0 * pairs))


def generative_bound(
    steps: int,
    inner_steps: int,
    *,
    n_pairs: int,
    discount: float,
    diameter: float,
    gradient_bound: float,
    outcome_bound: float,
    initial_error: float | None = None,
    form: Literal["printed", "theorem-4.1", "proved"] = "printed",
) -> float:
    """Theorem 4.2: E||Q_T - Q*|| <= e0/(1+hT) + 2 C_N/sqrt(h^3 T) + I(T')/h + C_N/sqrt(1+hT), h = 1 - discount.

    Steps beta_t = 1/(1 + h (t+1)); rewards in [0, 1]; e0 = ||Q_0 - Q*||, at most 1/h. I(T') is the error of the inner
    loop, of which the theorem says diam(Theta) C_g (2 + log T')/sqrt(T'):

    - "printed": just that, which is Theorem 4.1 without its factor for the maximum over pairs;
    - "theorem-4.1", "proved": with the factor of `inner_rate(form="printed")` or `inner_rate(form="proved")`. The last
      with the true C_M and C_g is what the paper's proof shows.

    >>> constants = dict(n_pairs=2, discount=0.5, diameter=1.0, gradient_bound=1.0, outcome_bound=2.0)
    >>> round(generative_bound(10**8, 10**4, **constants), 4)
    0.2289
    """
    _types.check_arguments(generative_bound, locals())
    _arguments.one_of("form", form, ("printed", "theorem-4.1", "proved"))
    inner = inner_rate(
        inner_steps,
        diameter=diameter,
        gradient_bound=gradient_bound,
        n_pairs=1 if form == "printed" else n_pairs,
        form="proved" if form == "proved" else "printed",
    )
    noise = noise_constant(n_pairs, discount, outcome_bound)
    return _outer_rate(steps, discount, noise, initial_error) + inner / (1.0 - discount)


class GenerativeSamples(NamedTuple):
    """What `generative_samples` answers: T, T' and S A T (T' + 1)."""

    steps: int
    inner_steps: int
    total: int


def generative_samples(
    epsilon: float,
    *,
    n_pairs: int,
    discount: float,
    diameter: float,
    gradient_bound: float,
    outcome_bound: float,
    initial_error: float | None = None,
    form: Literal["printed", "theorem-4.1", "proved"] = "printed",
) -> GenerativeSamples:
    """The smallest T, then the smallest T', with `generative_bound` <= epsilon; S A T (T'+1) samples (Theorem 4.2).

    T brings the outer terms to epsilon/2, T' the inner one to what is left; an even split is the best one but for
    logarithms. The total is of order S A diam^2 C_N^2 C_g^2/(epsilon^4 (1-discount)^5).

    >>> constants = dict(n_pairs=2, discount=0.5, diameter=1.0, gradient_bound=1.0, outcome_bound=2.0)
    >>> needed = generative_samples(0.1, **constants)
    >>> generative_bound(needed.steps, needed.inner_steps, **constants) <= 0.1
    True
    """
    _types.check_arguments(generative_samples, locals())
    epsilon = _arguments.positive("epsilon", epsilon)
    noise = noise_constant(n_pairs, discount, outcome_bound)
    steps = _arguments.smallest_count(lambda t: _outer_rate(t, discount, noise, initial_error), epsilon / 2.0)
    bound = partial(
        generative_bound,
        steps,
        n_pairs=n_pairs,
        discount=discount,
        diameter=diameter,
        gradient_bound=gradient_bound,
        outcome_bound=outcome_bound,
        initial_error=initial_error,
        form=form,
    )
    inner_steps = _arguments.smallest_count(bound, epsilon)
    return GenerativeSamples(steps, inner_steps, n_pairs * steps * (inner_steps + 1))


def _outer_rate(steps: int, discount: float, noise: float, initial_error: float | None) -> float:
    """The terms of Theorem 4.2 without the inner loop."""
    rest = 1.0 - discount
    start = 1.0 / rest if initial_error is None else _checks.finite_number("initial_error", initial_error)
    grown = 1.0 + rest * _checks.positive_integer("steps", steps)
    return start / grown + 2.0 * noise / math.sqrt(rest**3 * steps) + noise / math.sqrt(grown)
