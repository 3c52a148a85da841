"""Sepsis in intensive care: are the published values of the model right, and what does a robust policy buy there?"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm
from robustmdp.app.page import Curve, Figure, Key, Palette, Panel, draw
from robustmdp.table import Table

FloatArray = npt.NDArray[np.float64]

DISCOUNT = 1 - 1e-6
TOL = 1e-6  # rounding alone is worth 2e-7 at this discount
PUBLISHED = {"best policy": 0.88, "clinicians": 0.78}
RADII = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
CHOSEN = 0.05
MODEL = "as the model says"
DRAWS = 40
DEADLIER = (2, 4)  # times
SICKER = (0.1, 0.2, 0.3, 0.4, 0.5)  # more likely per point of organ failure
DEATH, SURVIVAL = 713, 714  # in the files; all states from here on end the stay


class Sepsis(NamedTuple):
    """The model, its first states, what clinicians do (S, A), and of each transition count and organ failure score."""

    mdp: rm.MDP
    initial: FloatArray
    clinicians: FloatArray
    counts: rm.Counts
    score: FloatArray


class Value(NamedTuple):
    """A chance of survival at discount 1: certainly between these."""

    low: float
    high: float

    def rounds_to(self, digits: float) -> bool:
        """Do both ends round to two digits that were published?"""
        return f"{self.low:.2f}" == f"{self.high:.2f}" == f"{digits:.2f}"


class Found(NamedTuple):
    """What the script found."""

    values: dict[str, Value]
    levels: Table
    tried: rm.StressTable


def assets() -> Path | None:
    """The folder of the package's data, without running the package."""
    try:
        files = metadata.files("icu-sepsis") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == "dynamics.npz"), None)


def load(folder: Path) -> Sepsis:
    """The admissible pairs of the published tables."""
    with np.load(folder / "dynamics.npz", allow_pickle=False) as data:
        transitions, expert, initial, sofa = (data[k] for k in ("tx_mat", "expert_policy", "d_0", "sofa_scores"))
    admissible = np.zeros((DEATH, expert.shape[1]), bool)
    lines = (folder / "admissible_actions.txt").read_text().splitlines()[1 : DEATH + 1]
    for patient, line in enumerate(lines):
        admissible[patient, [int(action) for action in line.split()]] = True
    # In the order of the model's own entries: by state, action and successor, endings last.
    state, action, following = np.nonzero(transitions[:DEATH] * admissible[:, :, None])
    ends = following >= DEATH
    mdp = rm.MDP.from_rows(
        state,
        action,
        np.where(ends, following - DEATH, following),  # which ending it is, death or survival, stays apart
        transitions[state, action, following],
        (following == SURVIVAL).astype(float),
        DISCOUNT,
        terminated=ends,
        n_states=DEATH,
    )
    policy = clinicians(expert[:DEATH], admissible)
    return Sepsis(mdp, initial[:DEATH], policy, counts_behind(mdp, ends), sofa[following])


def clinicians(expert: FloatArray, admissible: npt.NDArray[np.bool_]) -> FloatArray:
    """In the model an inadmissible action does what an admissible one, drawn at random, would do: so it is one."""
    stray = np.where(admissible, 0.0, expert).sum(axis=1)
    return np.where(admissible, expert + (stray / admissible.sum(axis=1))[:, None], 0.0)


def counts_behind(mdp: rm.MDP, ends: npt.NDArray[np.bool_]) -> rm.Counts:
    """The probabilities are shares n_i/n: the smallest n that makes all n_i of a row whole numbers."""
    p, lengths = mdp.probabilities, np.diff(mdp.indptr)
    rarest = np.minimum.reduceat(p, mdp.indptr[:-1])
    total = np.zeros(mdp.n_pairs)
    for seen in range(1, 20):
        guess = np.rint(seen / rarest)
        count = p * np.repeat(guess, lengths)
        whole = np.maximum.reduceat(np.abs(count - np.rint(count)), mdp.indptr[:-1]) < 1e-6
        total = np.where((total == 0) & whole, guess, total)
    count = np.rint(p * np.repeat(total, lengths))
    survived = (mdp.rewards == 1.0).astype(np.int64)
    following = np.where(ends, survived, mdp.indices)
    return rm.Counts(
        mdp.states, mdp.actions, mdp.indptr, following, ends, count, mdp.rewards, mdp.n_states, mdp.n_actions
    )


def longest_stay(sepsis: Sepsis) -> float:
    """The largest L = E[1 + discount + ... + discount^(T-1)] over all policies, T the length of a stay."""
    each_step = sepsis.mdp.with_rewards(np.ones(sepsis.mdp.n_pairs))
    return float(sepsis.initial @ rm.solve(each_step, rm.Nominal(), tol=TOL).upper)


def undiscounted(sepsis: Sepsis, solution: rm.Solution, longest: float) -> Value:
    """The chance of survival: V <= V at discount 1 <= V + E[1 - discount^T] = V + (1 - discount) L.

    The largest L of all policies covers the best policy at discount 1 too, which need not be the one found.
    """
    low, high = sepsis.initial @ solution.lower, sepsis.initial @ solution.upper
    return Value(float(low), float(high + (1 - DISCOUNT) * longest))


def deadlier(sepsis: Sepsis, times: float) -> rm.MDP:
    """Each death is so many times as likely."""
    mdp = sepsis.mdp
    dies = (mdp.indices == mdp.n_states) & (mdp.rewards == 0.0)
    return mdp.with_probabilities(_rescaled(mdp, np.where(dies, times, 1.0), np.ones(mdp.nnz, bool)))


def sicker(sepsis: Sepsis, share: float) -> rm.MDP:
    """Each point of organ failure makes a successor so much more likely; death and discharge stay as they are."""
    mdp = sepsis.mdp
    return mdp.with_probabilities(_rescaled(mdp, (1.0 + share) ** sepsis.score, mdp.indices < mdp.n_states))


def _rescaled(mdp: rm.MDP, factor: FloatArray, where: npt.NDArray[np.bool_]) -> FloatArray:
    """Probabilities times factors within each row, the mass there kept."""
    before, after = (
        np.repeat(np.add.reduceat(mass * where, mdp.indptr[:-1]), np.diff(mdp.indptr))
        for mass in (mdp.probabilities, mdp.probabilities * factor)
    )
    return np.where(where, mdp.probabilities * factor * before / np.where(where, after, 1.0), mdp.probabilities)


def published_values(sepsis: Sepsis, nominal: rm.Solution) -> dict[str, Value]:
    """What the model says of its best policy and of the clinicians, beside what was published."""
    expert = rm.evaluate(sepsis.mdp, sepsis.clinicians, rm.Nominal(), tol=TOL)
    longest = longest_stay(sepsis)
    ranges = (undiscounted(sepsis, solution, longest) for solution in (nominal, expert))
    values = dict(zip(PUBLISHED, ranges, strict=True))
    print(
        f"Stays last {longest:.1f} steps on average under the slowest policy, so a discount of 1 - {1 - DISCOUNT:.0e}"
    )
    print(f"hides at most {(1 - DISCOUNT) * longest:.0e} of the chance of survival:\n")
    print(f"{'':>14}{'certified':>22}{'published':>12}")
    for name, value in values.items():
        verdict = "agrees" if value.rounds_to(PUBLISHED[name]) else "differs"
        print(f"{name:>14}{f'{value.low:.5f} to {value.high:.5f}':>22}{PUBLISHED[name]:>12.2f}   {verdict}")
    return values


def price(sepsis: Sepsis) -> Table:
    """For each radius what robustness costs if the model is right, and what it buys if it is not."""
    levels = rm.robustness_curve(sepsis.mdp, rm.ChiSquare(), radii=RADII, initial=sepsis.initial, tol=TOL)
    expert = [
        sepsis.initial
        @ rm.evaluate(sepsis.mdp, sepsis.clinicians, rm.Constrained(rm.ChiSquare(), radius), tol=TOL).value
        for radius in RADII
    ]
    levels = Table({**levels.columns, "clinicians": np.array(expert)})
    print("\nChance of survival if nature may bend each row of the model by a radius, in chi-square divergence:\n")
    print(f"{'':>8}{'robust policy':>34}{'worst case of':>26}")
    print(f"{'radius':>8}{'if right':>12}{'worst case':>12}{'changed':>10}{'best policy':>14}{'clinicians':>12}")
    names = ("radius", "nominal", "worst", "changed", "nominal_worst", "clinicians")
    for radius, right, worst, changed, best, clinic in zip(*(levels[name] for name in names), strict=True):
        print(f"{radius:>8g}{right:>12.4f}{worst:>12.4f}{changed:>10}{best:>14.4f}{clinic:>12.4f}")
    return levels


def other_worlds(sepsis: Sepsis, nominal: rm.Solution) -> rm.StressTable:
    """The policies where the estimates were unlucky, where more patients die, and where they get sicker."""
    robust = rm.solve(sepsis.mdp, rm.Constrained(rm.ChiSquare(), CHOSEN), tol=TOL)
    families = {
        MODEL: sepsis.mdp,
        **{f"each death {times} times as likely": deadlier(sepsis, times) for times in DEADLIER},
        **{f"patients get sicker, {share:+.0%} a point": sicker(sepsis, share) for share in SICKER},
    }
    worlds: list[rm.worlds.Family] = [rm.worlds.Models([world], name) for name, world in families.items()]
    worlds.insert(1, rm.worlds.Plausible(sepsis.counts, DRAWS))
    policies: dict[str, FloatArray | rm.Solution] = {
        "nominal": nominal,
        "robust": robust,
        "clinicians": sepsis.clinicians,
    }
    return rm.stress(sepsis.mdp, policies, worlds, initial=sepsis.initial, tol=TOL)


def account(tried: rm.StressTable, visits: FloatArray) -> None:
    """Does it do better, and where?"""
    print(f"\nThe counts can be read off the probabilities: {np.median(visits):.0f} visits a row (median).")
    print(f"The worst tenth of {DRAWS} models that they leave possible, and some in which the world has changed:\n")
    print(f"{'':>35}" + "".join(f"{name:>12}" for name in tried["policy"][:3]))
    gains = {}
    for family in dict.fromkeys(tried["family"].tolist()):
        values = tried.where(family=family)["worst_tenth"]
        gains[family] = values[1] - values[0]
        mark = "   <- robust is better" if gains[family] > 0 else ""
        print(f"{family:>35}" + "".join(f"{value:>12.4f}" for value in values) + mark)
    cost = -gains.pop(MODEL)
    better = sum(gain > 0 for gain in gains.values())
    print(f"\nThe robust policy, radius {CHOSEN:g}, does better in {better} of {len(gains)} other worlds, by")
    print(f"{max(gains.values()):.4f} at most, and worse in the rest, by {-min(gains.values()):.4f} at most;")
    print(f"if the model is right, it costs {cost:.4f}.")


def figure(levels: Table, tried: rm.StressTable) -> Figure:
    """Worst case against the radius, survival against how much sicker patients get."""
    policies = {name: Key("policy", name) for name in ("nominal", "robust", "clinicians")}
    worst = zip(policies.values(), ("nominal_worst", "worst", "clinicians"), strict=True)
    left = tuple(Curve(key, levels["radius"], levels[column], style="line+points") for key, column in worst)
    x = 100 * np.array([0.0, *SICKER])
    right = tuple(
        Curve(key, x, tried.where(policy=name)["mean"][[0, *range(-len(SICKER), 0)]], style="line+points")
        for name, key in policies.items()
    )
    return Figure(
        "icu_sepsis",
        "Sepsis: what a robust policy is good for",
        "Chance of survival in the worst case within a radius, and where patients get sicker than in the data.",
        "",
        (
            Panel("Worst case within a radius", "chi-square radius", "chance of survival", left),
            Panel(
                f"If patients get sicker (radius {CHOSEN:g})",
                "% more likely per point of organ failure (SOFA)",
                "chance of survival",
                right,
            ),
        ),
    )


def main(folder: Path = Path("demo")) -> Found | None:
    """Check the published values, then compare three policies; None where the data is not installed."""
    place = assets()
    if place is None:
        print("The model is not installed here; get it with: pip install --no-deps icu-sepsis")
        return None
    sepsis = load(place)
    mdp = sepsis.mdp
    print(f"{mdp.n_states} states of a patient, {mdp.n_pairs:,} admissible pairs, {mdp.nnz:,} transitions.\n")
    nominal = rm.solve(mdp, rm.Nominal(), tol=TOL)
    values = published_values(sepsis, nominal)
    levels = price(sepsis)
    tried = other_worlds(sepsis, nominal)
    account(tried, sepsis.counts.total)
    plot = figure(levels, tried)
    draw(plot, folder, Palette.of([plot]))
    return Found(values, levels, tried)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
