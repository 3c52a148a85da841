"""From a problem to a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp.app.page import write_page
from robustmdp.app.study.layout import Layout
from robustmdp.app.study.names import Names
from robustmdp.app.study.page import sections_of
from robustmdp.app.study.study import Progress, Study, study
from robustmdp.divergences import KL, FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.tuning.curve import SetAt
from robustmdp.tuning.worlds import Models

_CODE = """{imports}

{source}
advice = rm.suggest(mdp, {doubt}{evidence}{initial})
print(advice)

curve = rm.robustness_curve(mdp, {doubt}{initial})
solution = advice.solution  # as rm.solve(mdp, advice.ambiguity) finds it, up to ties
print(solution)

policies = {{"trusting the model": rm.Nominal(), "recommended": solution}}
worlds = [
{worlds}
]
print(rm.stress(mdp, policies, worlds{initial}))
"""


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """A studied problem, ready to be told."""

    title: str
    study: Study
    names: Names
    told: tuple[tuple[str, str], ...]
    code: str

    def write(self, path: str | Path) -> Path:
        """One self-contained HTML page; needs plotly."""
        lead, sections = sections_of(self.study, self.names, self.told, self.code)
        return write_page(Path(path), self.title, lead, sections)

    def _fields(self) -> _display.Fields:
        advice = self.study.suggestion
        return [
            ("problem", self.title),
            ("level", str(advice.ambiguity)),
            *(("because", why) for why in advice.reasons),
        ]

    def __repr__(self) -> str:
        return _display.as_text("Analysis", self._fields())

    def _repr_html_(self) -> str:
        return _display.as_html("Analysis", self._fields())


def analyse(
    mdp: MDP,
    divergence: FDivergence | SetAt | None = None,
    *,
    levels: npt.ArrayLike | None = None,
    counts: Counts | None = None,
    confidence: float = 0.95,
    held_out: Sequence[MDP] | Models | None = None,
    initial: npt.ArrayLike | None = None,
    policies: Mapping[str, Any] | None = None,
    layout: Layout | None = None,
    title: str = "How robust should the decision be?",
    told: Sequence[tuple[str, str]] = (),
    source: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Study a problem: robustness curve, recommendation, stress test, and where decisions change.

    Parameters
    ----------
    mdp : the model; with counts, `counts.model(discount)`
    divergence : KL() by default, or a function from a level to a set, such as rm.CVaR, with the `levels` to try
    counts, confidence, held_out, initial : as for `suggest`
    policies : more policies for the stress test, such as the one in use
    layout : where states lie, if they are places of a grid
    title, told : the page's title, and what else it should say of the problem
    source : Python that makes `mdp` (and `counts` or `held_out`), for the program that the page ends with; by default
        it says that these are yours
    progress : called with (part, share done)

    >>> from robustmdp import problems
    >>> analyse(problems.river_swim(), initial=0).study.sweep.points[0].robust.status.code
    'converged'
    """
    chosen = KL() if divergence is None else divergence
    _checks.must(
        layout is None or layout.n_states == mdp.n_states,
        f"the layout must have a place for each of the {mdp.n_states} states: got {layout and layout.n_states}",
    )
    found = study(
        mdp,
        chosen,
        levels=levels,
        counts=counts,
        confidence=confidence,
        held_out=held_out if held_out is None or isinstance(held_out, Models) else Models(list(held_out)),
        initial=initial,
        policies=policies or {},
        threads=threads,
        progress=progress or (lambda part, share: None),
    )
    yours = ["mdp", *(["counts"] if counts is not None else []), *(["held_out"] if held_out is not None else [])]
    made = source or f"{', '.join(yours)} = ...  # yours"
    code = _program(made, found, counts is not None, held_out, confidence, initial)
    return Analysis(title, found, Names(mdp, layout), tuple(told), code)


def _program(
    source: str,
    study: Study,
    counted: bool,
    held_out: Sequence[MDP] | Models | None,
    confidence: float,
    initial: npt.ArrayLike | None,
) -> str:
    """The main steps as a program; imports of the source go to the top."""
    own = not study.divergence.is_built_in
    lines, divergence = source.splitlines(), "divergence" if own else f"rm.{study.divergence!r}"
    lines += (
        ["divergence = ...  # yours"] if own and not any(line.startswith("divergence = ") for line in lines) else []
    )
    doubt = divergence
    if study.function is not None:
        doubt = "set_at, levels=levels"
        lines += [] if any(line.startswith("set_at = ") for line in lines) else ["set_at = ...  # yours"]
        lines.append(f"levels = [{', '.join(f'{level:.6g}' for level in study.sweep.curve[study.sweep.form])}]")
    imports = sorted({"import robustmdp as rm", *(line for line in lines if line.startswith("import "))})
    evidence = f", counts=counts, confidence={confidence!r}" if counted else ""
    evidence += ", held_out=held_out" if held_out is not None else ""
    place = np.asarray(initial)
    if place.ndim and not any(line.startswith("initial = ") for line in lines):
        lines.append("initial = ...  # yours")
    first = "" if initial is None else ", initial=initial" if place.ndim else f", initial={place.item()}"
    radius = "advice.radii" if isinstance(study.radius, np.ndarray) else repr(study.radius)
    worlds = [
        *(["held_out"] if isinstance(held_out, Models) else [] if held_out is None else ["*held_out"]),
        *(["rm.worlds.Plausible(counts, 100, seed=1)"] if counted else []),
        f"rm.worlds.RandomKernels({divergence}, {radius}, 50)",
        f"rm.worlds.Adversary(rm.Constrained({divergence}, {radius}))",
        *(["rm.worlds.Adversary(set_at(levels[-1]))"] if study.function is not None else []),
    ]
    return _CODE.format(
        imports="\n".join(imports),
        source="\n".join(line for line in lines if not line.startswith("import ")),
        doubt=doubt,
        evidence=evidence,
        initial=first,
        worlds="\n".join(f"    {world}," for world in worlds),
    )
