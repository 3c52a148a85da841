"""Error against samples: the paper's algorithms, our defaults, the plug-in estimate and multilevel Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from robustmdp.paper import curves
from robustmdp.paper.figures import Curve, Key, Panel
from robustmdp.paper.params import Budgets, InnerSteps, OnLoop, Replications, Seeds, Weight, changes
from robustmdp.paper.runs import build_chain, build_learner, measure_final_errors
from robustmdp.paper.work import Drawing, Experiment, Item, combine, seed_groups, timed
from robustmdp.table import Table

_SETS = {"chi2-penalty": "chi-square penalty", "kl-penalty": "KL penalty", "kl-ball": "KL ball"}
_NAMES = {
    "algorithm-1": "Algorithm 1",
    "algorithm-2": "Algorithm 2",
    "generative": "our default, generative",
    "markovian": "our default, trajectory",
    "plug-in": "plug-in, O(S²A) memory",
    "mlmc": "multilevel Monte Carlo",
}
_FOR_PENALTIES, _FOR_BALLS = ("algorithm-1", "algorithm-2"), ("mlmc",)


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Replications):
    """max |Q - Q*| at the end of runs of several lengths, all in the chain that returns.

    Rows: doubt, method, stay, restart, budget, seed, samples, error.
    """

    seeds: Seeds = 25
    weight: Weight = 1.0
    radius: Annotated[float, "Radius rho of the KL ball, for multilevel Monte Carlo"] = 0.1
    inner_steps: InnerSteps = 100
    budgets: Budgets = (10_000, 31_623, 100_000, 316_228, 1_000_000, 2_000_000)
    quick = changes(seeds=4, budgets=(10_000, 31_623, 100_000))


def tasks(params: Params) -> list[Item]:
    """One per kind of doubt, method, world, budget and group of seeds."""
    listed = []
    for doubt in _SETS:
        is_ball = doubt == "kl-ball"
        left_out = _FOR_PENALTIES if is_ball else _FOR_BALLS
        listed += combine(
            doubt=doubt,
            method=[name for name in _NAMES if name not in left_out],
            **params.chain,
            budget=params.budgets,
            seeds=seed_groups(params.seeds),
            level=params.radius if is_ball else params.weight,
            inner_steps=params.inner_steps,
        )
    return listed


@timed
def measure(item: Item) -> Table:
    """The final errors of some replications."""
    learner = build_learner(item["method"], _build_ambiguity(item), item["inner_steps"])
    return measure_final_errors(item, build_chain(item), learner)


def _build_ambiguity(item: Item) -> Any:
    from robustmdp.ambiguity import Constrained, Penalized
    from robustmdp.divergences import KL, ChiSquare

    if item["doubt"] == "kl-ball":
        return Constrained(KL(), item["level"])
    return Penalized(ChiSquare() if item["doubt"] == "chi2-penalty" else KL(), item["level"])


def draw(records: Table) -> Drawing:
    """One log-log panel per kind of doubt, with fitted lines."""
    panels, parts = [], []
    for doubt, title in _SETS.items():
        drawn: list[Curve] = []
        sentences = []
        for method, of in curves.named(records.where(doubt=doubt), "method", _NAMES):
            key, fitted = Key("algorithm", _NAMES[method]), ""
            mean = curves.mean_curve(of, "samples", key, style="line+points", name="mean and 95 % band")
            drawn.append(mean)
            if len(mean.x) > 1:
                slope, scale = curves.exponent(mean.x, mean.y)
                drawn.append(Curve(key, mean.x, scale * mean.x**slope, style="dotted", name="fitted power"))
                fitted = f" (n^{slope:.2f})"
            sentences.append(f"{_NAMES[method]} {mean.y[-1]:.3g}{fitted}")
        level = f"{'ρ' if doubt == 'kl-ball' else 'λ'} = {records.where(doubt=doubt)['level'][0]:g}"
        panels.append(Panel(f"{title}, {level}", "samples", "max |Q − Q*|", tuple(drawn), "log", "log"))
        parts.append(f"{title}: {', '.join(sentences)}")
    caption = (
        f"Error of Q against samples in the chain that returns (q = {records['restart'][0]:g}), each point the end of "
        f"runs of that length, means of {len(records.values('seed'))} seeds with 95 % bands; dotted: fitted powers."
    )
    reading = (
        f"Errors after {records['budget'].max():,} samples at p = {records['stay'][0]:g}, with the fitted exponents. "
        f"{'; '.join(parts)}."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("sample-efficiency", "Error against samples", Params, tasks, measure, draw)
