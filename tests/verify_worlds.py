"""Every family of sets under every criterion, in small random worlds, against proved bounds: `make verify`.

Solved and evaluated, to the end and stopped early, with states that may wait for ever, traps, sets that help. What the
referee cannot prove, for example where a sum is infinite, is counted as "not judged".
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm
from oracles import certified, sets
from verify_sets import FAMILIES, Family, Generator, for_world

FloatArray = npt.NDArray[np.float64]
DEFAULT = 1e-8  # tolerance that every run must meet; less may be hidden by rounding
LARGEST = 1e4  # sums beyond it take so many steps that rounding hides the default tolerance
BEST = 1e-14  # tolerance of the solution from which the referee starts


def _ball(divergence: Any) -> Family:
    return Family(lambda rng, p: rm.Constrained(divergence, 10 ** rng.uniform(-3.0, 0.0)))


def _price(divergence: Any) -> Family:
    return Family(lambda rng, p: rm.Penalized(divergence, 10 ** rng.uniform(-1.0, 1.5)))


DIVERGENCES = {
    "KL": rm.KL(),
    "chi-square": rm.ChiSquare(),
    "Burg": rm.Burg(),
    "Hellinger": rm.Hellinger(),
    "Jensen-Shannon": rm.JensenShannon(),
    "total variation": rm.TotalVariation(),
    "Cressie-Read 3": rm.CressieRead(3.0),
    "Cressie-Read -1": rm.CressieRead(-1.0),
}
SMOOTH = {
    **{f"{name}, ball": _ball(divergence) for name, divergence in DIVERGENCES.items()},
    **{f"{name}, price": _price(divergence) for name, divergence in DIVERGENCES.items()},
}
ALL = {**FAMILIES, **SMOOTH}


class Verdict(NamedTuple):
    """What was asked and how it ended, the distance of the referee's bounds, and what is wrong."""

    outcome: str
    width: float = 0.0
    failures: tuple[str, ...] = ()


class Case(NamedTuple):
    """A world, the sets of its rows, and the random numbers that are left."""

    mdp: rm.MDP
    ambiguity: Any
    set_of: sets.SetOf
    can_wait: bool
    rng: Generator


def random_case(family: str, criterion: int, seed: int, index: int, *, sign: int, discount: float, ends: bool) -> Case:
    """2 to 4 states; without an end the last one is a goal. With rewards of one sign, some states wait or are traps."""
    rng = np.random.default_rng([seed, index, list(ALL).index(family), criterion])
    n = int(rng.integers(2, 5))
    made = ALL[family].make(rng, np.ones(n))
    keeps = getattr(made, "support", "model") == "model"
    waits = keeps and sign != 0
    out = n if ends else n - 1
    rows: list[tuple[int, int, int, float, float]] = []
    for s in range(n):
        if (not ends and s == out) or (waits and s > 0 and rng.random() < 0.1):
            rows.append((s, 0, s, 1.0, 0.0))
            continue
        actions = int(rng.integers(1, 3))
        for a in range(actions):
            rows += _random_row(rng, s, a, n, out, sign)
        if waits and rng.random() < 0.2:
            rows.append((s, actions, s, 1.0, 0.0))
    mdp = rm.MDP.from_rows(*zip(*rows, strict=True), discount, n_states=n)
    ambiguity, set_of = for_world(made, mdp, rng)
    if rng.random() < 0.3:
        return Case(mdp, rm.Optimistic(ambiguity), lambda s, pair: rm.Optimistic(set_of(s, pair)), keeps, rng)
    return Case(mdp, ambiguity, set_of, keeps, rng)


def _random_row(
    rng: Generator, state: int, action: int, n: int, out: int, sign: int
) -> list[tuple[int, int, int, float, float]]:
    """Two successors or more, mostly with the way out; rewards of the pair or of the successors."""
    others = [s for s in range(n) if s != out]
    leaves = len(others) < 2 or rng.random() < 0.85
    reached = rng.choice(others, size=int(rng.integers(1 if leaves else 2, min(3, len(others)) + 1)), replace=False)
    p = rng.dirichlet(np.ones(len(reached)))
    successors = [int(s) for s in reached]
    if leaves:
        share = rng.uniform(0.1, 0.7)
        successors, p = [*successors, out], np.append((1.0 - share) * p, share)
    rewards = rng.normal(size=len(p)) if state % 2 else np.full(len(p), rng.normal())
    if sign:
        rewards = sign * np.abs(rewards)
    return [(state, action, t, float(x), float(r)) for t, x, r in zip(successors, p, rewards, strict=True)]


def random_stop(rng: Generator, index: int, *, has_solver: bool = True) -> dict[str, Any]:
    """How a run ends: by itself for two cases of four, by a callback, by a limit of steps."""
    steps = int(rng.integers(1, 6))
    if index % 4 == 1 or (index % 4 == 3 and not has_solver):
        return {"callback": lambda step: step.step >= steps}
    if index % 4 == 3:
        return {"solver": rm.ValueIteration(max_steps=steps) if rng.random() < 0.5 else rm.PolicyIteration(max_steps=1)}
    return {"tol": float(rng.choice([DEFAULT, 1e-10]))}


def random_policy(mdp: rm.MDP, rng: Generator) -> npt.NDArray[Any]:
    """(S,) actions or (S, A) probabilities."""
    available = mdp.table(np.ones(mdp.n_pairs), fill=0.0) > 0.0
    if rng.random() < 0.5:
        return np.array([rng.choice(np.flatnonzero(row)) for row in available])
    weights = available * rng.integers(0, 4, available.shape)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, available)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def on_pairs(mdp: rm.MDP, policy: npt.NDArray[Any]) -> FloatArray:
    """The probability of each pair, (n_pairs,)."""
    if policy.ndim == 1:
        return np.asarray((policy[mdp.states] == mdp.actions).astype(float))
    return np.asarray(policy[mdp.states, mdp.actions])


def judge_horizon(family: str, seed: int, index: int) -> list[Verdict]:
    """FiniteHorizon, solved or evaluated, with a policy for all steps or one for each."""
    discount = (1.0, 0.9, 0.5)[index % 3]
    case = random_case(family, 0, seed, index, sign=0, discount=discount, ends=bool(index % 2))
    mdp, rng = case.mdp, case.rng
    steps, terminal = int(rng.integers(1, 5)), rng.normal(size=mdp.n_states)
    criterion, stop = rm.FiniteHorizon(steps, terminal), random_stop(rng, index // 6, has_solver=False)
    game = certified.Game(mdp, case.set_of, {}, 0, case.can_wait)
    solution = rm.solve(mdp, case.ambiguity, criterion=criterion, **stop)
    truth = certified.run_horizon(game, terminal, steps, None)
    own = _own_steps(game, terminal, solution.policy, truth)
    verdicts = [_judge_steps("solved", solution, truth, own, "tol" in stop)]
    if rng.random() < 0.5:
        policy = random_policy(mdp, rng)
        by_step = [on_pairs(mdp, policy)] * steps
    else:
        policy = np.array([random_policy_table(mdp, rng) for _ in range(steps)])
        by_step = [on_pairs(mdp, one) for one in policy]
    solution = rm.evaluate(mdp, policy, case.ambiguity, criterion=criterion, **stop)
    truth = certified.run_horizon(game, terminal, steps, by_step)
    return [*verdicts, _judge_steps("evaluated", solution, truth, truth, "tol" in stop)]


def _own_steps(game: certified.Game, terminal: FloatArray, policies: Any, truth: Any) -> list[certified.Bounds]:
    """Bounds of the returned policies; those of the best ones if they are the same."""
    by_step = [on_pairs(game.mdp, policy) for policy in policies]
    is_best = all(chosen[list(stage.pairs)].all() for chosen, stage in zip(by_step, truth, strict=False))
    return list(truth) if is_best else certified.run_horizon(game, terminal, len(by_step), by_step)


def random_policy_table(mdp: rm.MDP, rng: Generator) -> FloatArray:
    """(S, A) probabilities."""
    policy, table = random_policy(mdp, rng), np.zeros((mdp.n_states, mdp.n_actions))
    table[mdp.states, mdp.actions] = on_pairs(mdp, policy)
    return table


def _judge_steps(name: str, solution: rm.Solution, truth: Any, own: Any, is_whole: bool) -> Verdict:
    wrong = [
        f"{name}, step {t}: {text}"
        for t, (stage, mine) in enumerate(zip(truth, own, strict=True))
        for text in compare(solution.lower[t], solution.upper[t], stage, mine)
    ]
    if is_whole and not solution.converged:
        wrong.append(f"{name}: {solution.status}")
    return Verdict(f"{name}, {solution.status.code}", max(map(_width, truth)), tuple(wrong))


def judge_total(family: str, seed: int, index: int) -> list[Verdict]:
    """TotalReward with rewards of one sign or both; the returned policy and one at random."""
    sign = (1, -1, 0)[index % 3]
    case = random_case(family, 1, seed, index, sign=sign, discount=1.0, ends=True)
    game = certified.Game(case.mdp, case.set_of, {}, sign, case.can_wait)
    stop = random_stop(case.rng, index // 3)
    policy = random_policy(case.mdp, case.rng)
    settings: dict[str, Any] = {"criterion": rm.TotalReward()}
    solve = partial(rm.solve, case.mdp, case.ambiguity, **settings)
    verdicts = [_judge_sum("solved", game, solve, stop, partial(_evaluated, case, settings), None)]
    evaluate = partial(rm.evaluate, case.mdp, policy, case.ambiguity, **settings)
    stop = {key: value for key, value in stop.items() if key != "solver"}
    return [*verdicts, _judge_sum("evaluated", game, evaluate, stop, None, on_pairs(case.mdp, policy))]


def _evaluated(case: Case, settings: dict[str, Any], policy: npt.NDArray[Any]) -> rm.Solution:
    return rm.evaluate(case.mdp, policy, case.ambiguity, tol=BEST, **settings)


def judge_reach(family: str, seed: int, index: int) -> list[Verdict]:
    """Probabilities, with or without states to avoid, and rewards until a goal; within some steps or not."""
    rewards, minimise, within = bool(index % 3 == 2), bool(index // 3 % 2), index // 6 % 4 == 0
    case = random_case(family, 2, seed, index, sign=0 if rewards else 1, discount=1.0, ends=not rewards)
    mdp, rng, side = case.mdp, case.rng, -1.0 if minimise else 1.0
    goal = mdp.n_states - 1 if rewards else int(rng.integers(mdp.n_states))
    avoid = [int(rng.integers(mdp.n_states))] if not rewards and rng.random() < 0.4 else None
    question: dict[str, Any] = {"avoid": avoid, "minimise": minimise, "rewards": rewards}
    pins = dict.fromkeys(avoid or (), 0.0) | {goal: 0.0 if rewards else side}
    played = mdp.with_rewards(side * mdp.rewards if rewards else np.zeros(mdp.n_pairs))
    game = certified.Game(played, case.set_of, pins, 0 if rewards else int(side), case.can_wait)
    ask = partial(_asked, mdp, case.ambiguity, goal, question, side)
    stop = random_stop(rng, index // 24, has_solver=False)
    if within:
        steps = int(rng.integers(1, 5))
        solution = ask(within=steps, **stop)
        terminal = np.array([pins.get(s, 0.0) for s in range(mdp.n_states)])
        truth = certified.run_horizon(game, terminal, steps, None)
        own = _own_steps(game, terminal, solution.policy, truth)
        return [_judge_steps("within", solution, truth, own, "tol" in stop)]
    return [_judge_sum("rewards" if rewards else "probability", game, ask, stop, None, None)]


def _asked(mdp: rm.MDP, ambiguity: Any, goal: int, question: dict[str, Any], side: float, **settings: Any) -> Any:
    """`reach` with the sign of the game."""
    solution = rm.reach(mdp, ambiguity, [goal], **question, **settings)
    lower, upper = (solution.lower, solution.upper) if side > 0 else (-solution.upper, -solution.lower)
    return _Signed(side * solution.value, lower, upper, solution.policy, solution.worst_case, solution.status)


class _Signed(NamedTuple):
    """The parts of a solution that are judged."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    policy: Any
    worst_case: Any
    status: Any

    @property
    def converged(self) -> bool:
        return bool(self.status.code == "converged")


def _judge_sum(
    name: str,
    game: certified.Game,
    ask: Callable[..., Any],
    stop: dict[str, Any],
    evaluate: Callable[[Any], Any] | None,
    policy: FloatArray | None,
) -> Verdict:
    """One question without a number of steps: the truth is proved around the package's best answer."""
    try:
        solution, best = ask(**stop), ask(tol=BEST)
    except ValueError as refusal:
        return Verdict(f"{name}, refused: {str(refusal).split(':')[0][:60]}")
    must_converge = stop == {"tol": DEFAULT} and np.abs(best.value).max() <= LARGEST
    stalled = [f"{name}: {solution.status}"] if must_converge and not solution.converged else []
    truth = certified.run_until_end(game, best.value, best.worst_case, policy)
    if truth is None:  # the two runs must not contradict each other
        is_apart = (solution.lower > best.upper).any() or (best.lower > solution.upper).any()
        wrong = [f"{name}: bounds of two runs lie apart"] if is_apart else []
        return Verdict(f"{name}, not judged", 0.0, tuple(stalled + wrong))
    own = truth if policy is not None else _own_value(game, solution, evaluate) or truth
    wrong = [f"{name}: {text}" for text in compare(solution.lower, solution.upper, truth, own)]
    return Verdict(f"{name}, {solution.status.code}", _width(truth), tuple(stalled + wrong))


def _own_value(game: certified.Game, solution: Any, evaluate: Callable[[Any], Any] | None) -> certified.Bounds | None:
    """The value of the returned policy, where it can be evaluated and is finite."""
    if evaluate is None:
        return None
    try:
        start = evaluate(solution.policy)
    except ValueError:  # a run that stopped early may return a policy whose sum is infinite
        return None
    return certified.run_until_end(game, start.value, start.worst_case, on_pairs(game.mdp, solution.policy))


def _width(truth: certified.Bounds) -> float:
    scale = max(1.0, *(float(abs(x)) for x in truth.upper))
    return float(max(b - a for a, b in zip(truth.lower, truth.upper, strict=True))) / scale


def compare(lower: FloatArray, upper: FloatArray, truth: certified.Bounds, own: certified.Bounds) -> list[str]:
    """Bounds hold the value, and `lower` that of the returned policy."""
    return [
        f"state {s}: [{low!r}, {high!r}] must hold {float(truth.lower[s])!r}, policy {float(own.upper[s])!r}"
        for s, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True))
        if low > min(truth.upper[s], own.upper[s]) or high < truth.lower[s]
    ]


def judge_average(family: str, seed: int, index: int) -> list[Verdict]:
    """AverageReward, solved or evaluated; worlds whose gain depends on the start have wide bounds."""
    case = random_case(family, 3, seed, index, sign=0, discount=1.0, ends=index % 4 == 0)
    mdp, rng = case.mdp, case.rng
    game = certified.Game(mdp, case.set_of, {}, 0, case.can_wait)
    stop = random_stop(rng, index // 4)
    settings: dict[str, Any] = {"criterion": rm.AverageReward()}
    solution = rm.solve(mdp, case.ambiguity, **settings, **stop)
    best = rm.solve(mdp, case.ambiguity, **settings, tol=BEST)
    truth = certified.run_for_ever(game, best.value, None)
    own = rm.evaluate(mdp, solution.policy, case.ambiguity, **settings, tol=BEST)
    mine = certified.run_for_ever(game, own.value, on_pairs(mdp, solution.policy))
    verdicts = [_judge_gain("solved", solution, best, truth, mine, stop)]
    policy = random_policy(mdp, rng)
    stop = {key: value for key, value in stop.items() if key != "solver"}
    solution = rm.evaluate(mdp, policy, case.ambiguity, **settings, **stop)
    best = rm.evaluate(mdp, policy, case.ambiguity, **settings, tol=BEST)
    truth = certified.run_for_ever(game, best.value, on_pairs(mdp, policy))
    return [*verdicts, _judge_gain("evaluated", solution, best, truth, truth, stop)]


def _judge_gain(
    name: str, solution: rm.Solution, best: rm.Solution, truth: tuple[Any, Any], own: tuple[Any, Any], stop: Any
) -> Verdict:
    low, high = float(solution.gain_lower.min()), float(solution.gain_upper.max())
    is_right = solution.gain_lower.max() <= min(truth[1], own[1]) and solution.gain_upper.min() >= truth[0]
    wrong = [] if is_right else [f"{name}: [{low!r}, {high!r}] must hold {float(truth[0])!r} to {float(truth[1])!r}"]
    if stop == {"tol": DEFAULT} and best.error_bound <= 1e-3 * DEFAULT and not solution.converged:
        wrong.append(f"{name}: {solution.status}")
    return Verdict(f"{name}, {solution.status.code}", float(truth[1] - truth[0]), tuple(wrong))


JUDGES = {"horizon": judge_horizon, "total": judge_total, "reach": judge_reach, "average": judge_average}


def main(arguments: list[str] | None = None) -> int:
    """Judge every family under every criterion, print a table, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100, help="of each family and criterion; 1000 for the full run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=list(JUDGES), action="append")
    parser.add_argument("--families", nargs="+", choices=list(ALL), default=list(ALL))
    parser.add_argument("--details", action="store_true", help="print how the runs ended")
    options = parser.parse_args(arguments)
    failures: list[str] = []
    print(f"{'':<10}{'':<34}{'solutions':>10}{'judged':>8}{'width':>9}{'failed':>8}")
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for name in options.only or JUDGES:
            for family in options.families:
                judge = partial(JUDGES[name], family, options.seed)
                found = list(enumerate(pool.map(judge, range(options.worlds), chunksize=10)))
                verdicts = [(index, verdict) for index, of_world in found for verdict in of_world]
                judged = sum("refused" not in v.outcome and "not judged" not in v.outcome for _, v in verdicts)
                wrong = [f"{name}, {family}, world {i}: {text}" for i, v in verdicts for text in v.failures]
                width = max(verdict.width for _, verdict in verdicts)
                counts = f"{len(verdicts):>10}{judged:>8}{width:>9.0e}{len(wrong) or '':>8}"
                print(f"{name:<10}{family:<34}{counts}", flush=True)
                for outcome, count in sorted(Counter(v.outcome for _, v in verdicts).items()) * options.details:
                    print(f"{'':<12}{outcome:<80}{count:>6}")
                for text in wrong[:5]:
                    print(f"  {text}", flush=True)
                failures += wrong
    print(f"\n{len(failures)} failed")
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
