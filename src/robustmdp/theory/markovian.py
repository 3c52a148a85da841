"""Section 5 and Appendix D: convergence of Algorithm 2 along one trajectory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from robustmdp import _checks, _types
from robustmdp.divergences import ChiSquare
from robustmdp.theory import _arguments
from robustmdp.theory.chains import Mixing, Occupancy
from robustmdp.theory.constants import curvature, dual_interval, gradient_bound, outcome_bound


class StepOffsets(NamedTuple):
    """p_dagger of beta_t and p_alpha of alpha_t."""

    p_dagger: int
    p_alpha: int


def step_offsets(d_min: float, d_max: float, discount: float) -> StepOffsets:
    """p_dagger = ceil(d_max/((1-discount) d_min)), p_alpha = ceil((d_max/d_min)^1.5) (Theorem 5.1).

    For beta_t = 1/((1-discount) d_min (t + p_dagger)) and alpha_t = 1/(kappa d_min (t + p_alpha)^(2/3)). The proof of
    Lemma 5.2 calls the second one p_dagger too. Ratios are rounded first: 1 + 1e-15 must not become 2.

    >>> step_offsets(0.05, 0.05 * (1 + 1e-15), 0.9)
    StepOffsets(p_dagger=10, p_alpha=1)
    """
    _types.check_arguments(step_offsets, locals())
    _checks.must(
        0.0 < d_min <= d_max <= 1.0,
        f"d_min and d_max must satisfy 0 < d_min <= d_max <= 1: got {d_min:g} and {d_max:g}; "
        "d_min is 0 where a pair is never visited",
    )
    ratio = d_max / d_min
    return StepOffsets(math.ceil(round(ratio / (1.0 - _checks.discount(discount)), 9)), math.ceil(round(ratio**1.5, 9)))


@dataclass(frozen=True, kw_only=True)
class MarkovianSetting:
    """The quantities of an instance that Appendix D uses; make one for chi-square with `MarkovianSetting.chi_square`.

    Attributes
    ----------
    n_pairs : S A
    discount : float in (0, 1)
    diameter : diam(Theta)
    gradient_bound, outcome_bound, curvature : C_g, C_M, kappa
    smoothness : 1/(weight sigma)
    occupancy : (d_min, d_max)
    mixing : (M, rho)
    """

    n_pairs: int
    discount: float
    diameter: float
    gradient_bound: float
    outcome_bound: float
    curvature: float
    smoothness: float
    occupancy: Occupancy
    mixing: Mixing

    def __post_init__(self) -> None:
        _types.check_fields(self)
        _checks.positive_integer("n_pairs", self.n_pairs)
        _arguments.fraction("discount", self.discount)
        for name in ("diameter", "gradient_bound", "outcome_bound", "curvature", "smoothness"):
            _arguments.positive(name, getattr(self, name))
        _arguments.positive("mixing constant", self.mixing[0])
        _arguments.fraction("mixing rate", self.mixing[1])
        step_offsets(*self.occupancy, self.discount)

    @staticmethod
    def chi_square(
        weight: float,
        discount: float,
        n_pairs: int,
        occupancy: Occupancy | tuple[float, float],
        mixing: Mixing | tuple[float, float],
        form: Literal["true", "printed"] = "true",
    ) -> MarkovianSetting:
        """For rewards in [0, 1]: the tight Theta with its true constants, or section 4.1's with the printed ones.

        >>> setting = MarkovianSetting.chi_square(1.0, 0.5, 20, occupancy=(0.05, 0.05), mixing=(1.0, 0.5))
        >>> setting.diameter, setting.gradient_bound, setting.outcome_bound, setting.curvature, setting.smoothness
        (2.0, 1.0, 2.0, 0.25, 0.5)
        """
        _types.check_arguments(MarkovianSetting.chi_square, locals())
        _arguments.one_of("form", form, ("true", "printed"))
        values = 0.0, 1.0 / (1.0 - _checks.discount(discount))
        theta = dual_interval(ChiSquare(), weight, values, "tight" if form == "true" else "section-4.1")
        return MarkovianSetting(
            n_pairs=n_pairs,
            discount=discount,
            diameter=theta[1] - theta[0],
            gradient_bound=gradient_bound(ChiSquare(), weight, values, theta, form),
            outcome_bound=outcome_bound(ChiSquare(), weight, values, theta, form),
            curvature=curvature(weight, discount, form),
            smoothness=1.0 / (2.0 * weight),
            occupancy=Occupancy(*occupancy),
            mixing=Mixing(*mixing),
        )

    @property
    def offsets(self) -> StepOffsets:
        """p_dagger and p_alpha."""
        return step_offsets(*self.occupancy, self.discount)

    @property
    def memory(self) -> float:
        """M/(1 - rho), which bounds the solution of the chain's Poisson equation."""
        return self.mixing.constant / (1.0 - self.mixing.rate)

    @property
    def log_pairs(self) -> float:
        """log(2 S A)."""
        return math.log(2.0 * self.n_pairs)


class MarkovianConstants(NamedTuple):
    """Phi_1, Phi_2 and Phi_3 of Lemma 5.2."""

    phi_1: float
    phi_2: float
    phi_3: float


def markovian_constants(
    setting: MarkovianSetting, form: Literal["printed", "proved"] = "printed"
) -> MarkovianConstants:
    """Phi_1, Phi_2, Phi_3 of Lemma 5.2 (Appendix D); D = diam(Theta), K = M/(1-rho), L = log(2 S A), h = 1 - discount.

    "printed", where L_V, the Lipschitz constant of eta* in V, is 1 (Lemma 5.1):

    - Phi_1 = 3 D K (kappa D + 2 C_g + 2 d_min sqrt L)/(kappa d_min^2)
      + 6 C_g (2 kappa d_min D sqrt L + 2 C_g)/(kappa d_min)^2 + 12 C_M^2/(d_min h)^2
    - Phi_2 = D K (7 d_min D + 4 L_V C_M/h)/d_min^2
    - Phi_3 = 2 D^2/d_min + 32 C_M^2/(d_min h)^2

    "proved", from the same proof with three corrections: I_2 has the factor 2 in front of kappa; eta_t depends on the
    state of xi_t, so that Lemma E.8 must use f_{t-1} and pays three times for the changes of f; beta and alpha have
    different offsets, q = max(1, p_alpha/p_dagger). It holds for beta_t clipped at 1 and V_t projected onto
    [0, 1/h]; as printed, beta_0 is about 1/d_max and |Q_t| <= C_M fails.

    - Phi_1 = D K (6 D + 36 C_g/kappa + 12 d_min D sqrt(2 L))/d_min^2
      + 12 C_g D sqrt(2 L)/(kappa d_min) + 6 C_g^2/(kappa d_min)^2 + 12 (q C_M)^2/(d_min h)^2
    - Phi_2 = D K (2 d_min D + 24 C_M/h)/d_min^2
    - Phi_3 = 6 D^2 K/d_min + p_alpha^(2/3) D^2 + 24 q^(2/3) C_M^2/(d_min h)^2

    >>> setting = MarkovianSetting.chi_square(1.0, 0.5, 20, (0.05, 0.05), (1.0, 0.5))
    >>> round(markovian_constants(setting).phi_3)
    204960
    """
    _types.check_arguments(markovian_constants, locals())
    _arguments.one_of("form", form, ("printed", "proved"))
    d_min, rest = setting.occupancy.smallest, 1.0 - setting.discount
    diameter, slope, kappa, memory = setting.diameter, setting.gradient_bound, setting.curvature, setting.memory
    root = math.sqrt(setting.log_pairs)
    drift = (setting.outcome_bound / (d_min * rest)) ** 2
    if form == "printed":
        return MarkovianConstants(
            3.0 * diameter * memory * (kappa * diameter + 2.0 * slope + 2.0 * d_min * root) / (kappa * d_min**2)
            + 6.0 * slope * (2.0 * kappa * d_min * diameter * root + 2.0 * slope) / (kappa * d_min) ** 2
            + 12.0 * drift,
            diameter * memory * (7.0 * d_min * diameter + 4.0 * setting.outcome_bound / rest) / d_min**2,
            2.0 * diameter**2 / d_min + 32.0 * drift,
        )
    p_dagger, p_alpha = setting.offsets
    lag = max(1.0, p_alpha / p_dagger)
    noise = math.sqrt(2.0) * root
    return MarkovianConstants(
        diameter * memory * (6.0 * diameter + 36.0 * slope / kappa + 12.0 * d_min * diameter * noise) / d_min**2
        + 12.0 * slope * diameter * noise / (kappa * d_min)
        + 6.0 * (slope / (kappa * d_min)) ** 2
        + 12.0 * lag**2 * drift,
        diameter * memory * (2.0 * d_min * diameter + 24.0 * setting.outcome_bound / rest) / d_min**2,
        6.0 * diameter**2 * memory / d_min + p_alpha ** (2.0 / 3.0) * diameter**2 + 24.0 * lag ** (2.0 / 3.0) * drift,
    )


def dual_error_bound(steps: int, setting: MarkovianSetting, form: Literal["printed", "proved"] = "printed") -> float:
    """Lemma 5.2: E||eta_t - eta*_t||^2 <= Phi_1/t^(1/3) + (Phi_2 log(t + p) + Phi_3)/t^(2/3) after t >= 1 steps.

    p is p_dagger as printed, and max(p_dagger, p_alpha) in the proved form (see `markovian_constants`).

    >>> setting = MarkovianSetting.chi_square(1.0, 0.5, 20, (0.05, 0.05), (1.0, 0.5))
    >>> dual_error_bound(10**30, setting) * 10**10 / markovian_constants(setting).phi_1 < 1.001
    True
    """
    _types.check_arguments(dual_error_bound, locals())
    t = _checks.positive_integer("steps", steps)
    phi_1, phi_2, phi_3 = markovian_constants(setting, form)
    root = math.cbrt(t)
    return phi_1 / root + (phi_2 * math.log(t + _log_offset(setting, form)) + phi_3) / root**2


def markovian_rate(steps: int, setting: MarkovianSetting) -> float:
    """Theorem 5.1: Phi_1/(sigma weight d_min (1-discount)^2 (t+1)^(1/3)), the order of E||Q_t - Q*||, no constant.

    Logarithms are left out as well. Summing the printed bound on ||B_t|| as Lemma E.6 asks gives another
    d_max/d_min, which the theorem leaves out; `markovian_bound` is explicit.

    >>> setting = MarkovianSetting.chi_square(1.0, 0.5, 20, (0.05, 0.05), (1.0, 0.5))
    >>> round(markovian_rate(7, setting) / markovian_constants(setting).phi_1, 9)
    20.0
    """
    _types.check_arguments(markovian_rate, locals())
    t = _checks.positive_integer("steps", steps)
    rest = 1.0 - setting.discount
    phi_1 = markovian_constants(setting).phi_1
    return phi_1 * setting.smoothness / (setting.occupancy.smallest * rest**2 * math.cbrt(t + 1))


def markovian_bound(steps: int, setting: MarkovianSetting, initial_error: float | None = None) -> float:
    """Theorem 5.1 with every constant: a bound on E||Q_t - Q*|| for Algorithm 2 with beta clipped at 1, V projected.

    b(t) + (discount d_max/((1-discount) d_min t)) sum of b(k) for k < t + max(1/((1-discount) d_min), p_dagger) e0/t
    (Lemma E.6), where e0 = ||Q_0 - Q*||, at most 1/(1-discount), and b(k) >= E||B_k|| is the sum of

    - 3 discount Phi_1/(4 sigma weight (1-discount) d_min k^(1/3)),
    - (3 + 12 (1+discount) K) C_M sqrt(2 L/((1-discount) k))/d_min,
    - 3 discount (Phi_2 log(t+p) + Phi_3)/(2 sigma weight (1-discount) d_min k^(2/3)),
    - (discount D^2/(2 sigma weight) + 2 (1+discount) C_M K (3 + (1 + 4/((1-discount) d_min)) log(t+p)))
      /((1-discount) d_min k),

    with the proved `markovian_constants`. The proof's B_t with its slips mended; worst case, and loose by many orders.

    >>> setting = MarkovianSetting.chi_square(1.0, 0.5, 20, (0.05, 0.05), (1.0, 0.5))
    >>> markovian_bound(8 * 10**30, setting) / markovian_bound(10**30, setting) < 0.51
    True
    """
    _types.check_arguments(markovian_bound, locals())
    t = _checks.positive_integer("steps", steps)
    gamma, d_min, memory = setting.discount, setting.occupancy.smallest, setting.memory
    start = 1.0 / (1.0 - gamma) if initial_error is None else _checks.finite_number("initial_error", initial_error)
    phi_1, phi_2, phi_3 = markovian_constants(setting, "proved")
    log = math.log(t + _log_offset(setting, "proved"))
    reach = 1.0 / ((1.0 - gamma) * d_min)
    dual = 0.5 * gamma * setting.smoothness * reach
    noise = math.sqrt(2.0 * setting.log_pairs * reach / d_min)
    terms = (
        (1.0 / 3.0, 1.5 * dual * phi_1),
        (0.5, (3.0 + 12.0 * (1.0 + gamma) * memory) * setting.outcome_bound * noise),
        (2.0 / 3.0, 3.0 * dual * (phi_2 * log + phi_3)),
        (
            1.0,
            dual * setting.diameter**2
            + 2.0 * (1.0 + gamma) * setting.outcome_bound * memory * reach * (3.0 + (1.0 + 4.0 * reach) * log),
        ),
    )
    latest = sum(coefficient * math.pow(t, -power) for power, coefficient in terms)
    earlier = sum(coefficient * _sum_of_powers(t, power) for power, coefficient in terms)
    carried = gamma * setting.occupancy.largest * reach * earlier
    return latest + (carried + max(reach, setting.offsets.p_dagger) * start) / t


def _log_offset(setting: MarkovianSetting, form: str) -> int:
    return setting.offsets.p_dagger if form == "printed" else max(setting.offsets)


def _sum_of_powers(n: int, power: float) -> float:
    """At least the sum of k^-power for k = 1..n, 0 < power <= 1."""
    return 1.0 + math.log(n) if power == 1.0 else math.pow(n, 1.0 - power) / (1.0 - power)
