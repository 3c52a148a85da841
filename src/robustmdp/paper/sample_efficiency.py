"""Error against samples: the paper's algorithms, our defaults, the plug-in estimate and multilevel Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from robustmdp.paper import curves
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnLoop, Replications
from robustmdp.paper.work import Experiment, Item, build_chain, measure_final_errors, product, seed_groups, timed
from robustmdp.table import Table

TITLE = "Error against samples"
_SETS = {
    "chi2-penalty": "chi-square penalty",
    "kl-penalty": "KL penalty",
    "kl-ball": "KL ball",
}
_NAMES = {
    "algorithm-1": "Algorithm 1",
    "algorithm-2": "Algorithm 2",
    "generative": "our default, generative",
    "markovian": "our default, trajectory",
    "plug-in": "plug-in, O(S²A) memory",
    "mlmc": "multilevel Monte Carlo",
}
_PRINTED = ("algorithm-1", "algorithm-2")


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Replications):
    """max |Q - Q*| at the end of runs of several lengths, all in the chain that returns.

    Rows: doubt, method, stay, restart, budget, seed, samples, error.
    """

    seeds: Annotated[int, "Replications of each setting"] = 25
    weight: Annotated[float, "Penalty lambda"] = 1.0
    radius: Annotated[float, "Radius rho of the KL ball, for multilevel Monte Carlo"] = 0.1
    inner_steps: Annotated[int, "Inner iterations T' of Algorithm 1"] = 100
    budgets: Annotated[tuple[int, ...], "Samples"] = (10_000, 31_623, 100_000, 316_228, 1_000_000, 2_000_000)
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 4, "budgets": (10_000, 31_623, 100_000)}


def tasks(params: Params) -> list[Item]:
    """One per kind of doubt, method, world, budget and group of seeds."""
    shared = {
        "restart": params.restart,
        "discount": params.discount,
        "inner_steps": params.inner_steps,
    }
    listed = []
    for doubt in _SETS:
        level = params.radius if doubt == "kl-ball" else params.weight
        left_out = _PRINTED if doubt == "kl-ball" else ("mlmc",)  # the algorithms are for penalties, mlmc for balls
        methods = [name for name in _NAMES if name not in left_out]
        levels = product(doubt=[doubt], method=methods, stay=params.stay, budget=params.budgets)
        listed += [
            {**item, "level": level, **shared, "seeds": seeds} for item in levels for seeds in seed_groups(params.seeds)
        ]
    return listed


@timed
def measure(item: Item) -> Table:
    """The final errors of some replications."""
    return measure_final_errors(item, build_chain(item), _learner(item, _ambiguity(item)))


def _ambiguity(item: Item) -> Any:
    from robustmdp.ambiguity import Constrained, Penalized
    from robustmdp.divergences import KL, ChiSquare

    if item["doubt"] == "kl-ball":
        return Constrained(KL(), item["level"])
    return Penalized(ChiSquare() if item["doubt"] == "chi2-penalty" else KL(), item["level"])


def _learner(item: Item, ambiguity: Any) -> Any:
    from robustmdp import learning

    makers: dict[str, Callable[[], Any]] = {
        "algorithm-1": lambda: learning.GenerativeQLearning.paper(ambiguity, item["inner_steps"]),
        "algorithm-2": lambda: learning.MarkovianQLearning.paper(ambiguity),
        "generative": lambda: learning.GenerativeQLearning(ambiguity),
        "markovian": lambda: learning.MarkovianQLearning(ambiguity),
        "plug-in": lambda: learning.PlugIn(ambiguity),
        "mlmc": lambda: learning.MultilevelQLearning(ambiguity),
    }
    return makers[item["method"]]()


def figure(records: Table) -> Figure:
    """One log-log panel per kind of doubt, with fitted lines."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    panels = []
    for doubt, title in _SETS.items():
        drawn: list[Curve] = []
        for method, of in _methods(here.where(doubt=doubt)):
            key = Key("algorithm", _NAMES[method])
            x, values = curves.samples_and_errors(of)
            y, low, high = curves.band(values)
            drawn.append(Curve(key, x, y, low, high, "line+points", "mean and 95 % band"))
            if len(x) > 1:
                slope, scale = curves.exponent(x, y)
                drawn.append(Curve(key, x, scale * x**slope, style="dotted", name="fitted power"))
        level = here.where(doubt=doubt)["level"][0]
        symbol = "ρ" if doubt == "kl-ball" else "λ"
        panels.append(Panel(f"{title}, {symbol} = {level:g}", "samples", "max |Q − Q*|", tuple(drawn), "log", "log"))
    caption = (
        f"Error of Q against samples in the chain that returns (q = {here['restart'][0]:g}), each point the end of "
        f"runs of that length, means of {len(here.values('seed'))} seeds with 95 % bands; dotted: fitted powers."
    )
    return Figure("sample-efficiency", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _methods(records: Table) -> list[tuple[str, Table]]:
    found = {method: of for (method,), of in records.groups("method")}
    return [(method, found[method]) for method in _NAMES if method in found]


def _reading(stay: float, records: Table) -> str:
    largest = max(records.values("budget"))
    parts = []
    for doubt, title in _SETS.items():
        sentences = []
        for method, of in _methods(records.where(doubt=doubt)):
            x, values = curves.samples_and_errors(of)
            fitted = f" (n^{curves.exponent(x, values.mean(axis=0))[0]:.2f})" if len(x) > 1 else ""
            sentences.append(f"{_NAMES[method]} {values[:, -1].mean():.3g}{fitted}")
        parts.append(f"{title}: {', '.join(sentences)}")
    return f"Errors after {largest:,} samples at p = {stay:g}, with the fitted exponents. {'; '.join(parts)}."


EXPERIMENT = Experiment("sample-efficiency", TITLE, Params, tasks, measure, figure)
