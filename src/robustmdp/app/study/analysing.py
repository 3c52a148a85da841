"""From a problem to a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp.app.page import render, slug, write_page
from robustmdp.app.study.figures import figures_of
from robustmdp.app.study.headline import headline
from robustmdp.app.study.layout import Layout
from robustmdp.app.study.names import Names
from robustmdp.app.study.report import body
from robustmdp.app.study.study import Progress, Study, study
from robustmdp.app.study.sweep import LEVELS
from robustmdp.divergences import KL, FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.tuning.curve import SetAt
from robustmdp.tuning.suggestion import held_out_worlds
from robustmdp.tuning.trials import families_of
from robustmdp.tuning.worlds import Models


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(_display.Described):
    """A studied problem: its numbers in `study`, its `figures`, its page by `write`."""

    title: str
    study: Study
    names: Names
    told: tuple[tuple[str, str], ...]
    program: Mapping[str, Any]
    unit: str = ""
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    lead: str | None = None

    @cached_property
    def code(self) -> str:
        """The main steps as a Python program; needs jinja2."""
        text: str = render("program.py.j2", "robustmdp.app.study", **self.program)
        return text

    @property
    def headline(self) -> str:
        """The decision and its worth, as the page says it first."""
        return headline(self.study, self.unit) if self.lead is None else self.lead

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The page's plotly figures by name; needs plotly."""
        return figures_of(self.study, self.unit)

    def write(self, path: str | Path) -> Path:
        """One self-contained HTML page; needs plotly and jinja2."""
        opening = "" if self.lead is None else headline(self.study, self.unit)
        sections = body(self.study, self.names, self.told, self.extra, self.figures, self.code, opening)
        return write_page(Path(path), self.title, self.headline, sections, {**self.figures, **self._extra_figures()})

    def _extra_figures(self) -> dict[str, Any]:
        return {
            f"{slug(heading)}-{number}": item
            for heading, items in self.extra.items()
            for number, item in enumerate(items, 1)
            if hasattr(item, "to_plotly_json")
        }

    def _fields(self) -> _display.Fields:
        advice = self.study.suggestion
        return [
            ("problem", self.title),
            ("answer", self.headline),
            ("level", str(advice.ambiguity)),
            *(("because", why) for why in advice.reasons),
        ]


def analyse(
    mdp: MDP,
    divergence: FDivergence | SetAt | None = None,
    *,
    levels: npt.ArrayLike | None = None,
    counts: Counts | None = None,
    confidence: float = 0.95,
    method: str | None = None,
    held_out: Sequence[MDP] | Models | None = None,
    initial: npt.ArrayLike | None = None,
    policies: Mapping[str, Any] | None = None,
    worlds: Any = (),
    layout: Layout | None = None,
    title: str = "How robust should the decision be?",
    lead: str | None = None,
    unit: str = "",
    told: Sequence[tuple[str, str]] = (),
    extra: Mapping[str, Sequence[Any]] | None = None,
    source: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Study a problem: advice, robustness curve, stress test, and where decisions change.

    Parameters
    ----------
    mdp : the model; with counts, `counts.model(discount)`
    divergence : KL() by default, or a function from a level to a set, such as rm.CVaR, with the `levels` to try
    counts, confidence, method, held_out, initial : as for `suggest`; without counts and held-out models there is no
        advice
    policies, worlds : more for the stress test: policies by name, such as the one in use, and worlds as for `stress`
    layout : where states lie, if they are places of a grid
    title, lead : the page's title, and what it says first in place of the advice
    unit, told : of rewards, and what else the page should say of the problem
    extra : more sections for the page, before all others: by heading, paragraphs, plotly figures, and tables as dicts
        of "header", "rows" and "caption"
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
        method=method,
        held_out=held_out_worlds(held_out),
        initial=initial,
        policies=policies or {},
        worlds=families_of(worlds) if worlds else [],
        threads=threads,
        progress=progress or (lambda part, share: None),
    )
    yours = ["mdp", *(["counts"] if counts is not None else []), *(["held_out"] if held_out is not None else [])]
    lines = (source or f"{', '.join(yours)} = ...  # yours").splitlines()
    program = _program(lines, found, counts, held_out, confidence, method, initial)
    return Analysis(title, found, Names(mdp, layout), tuple(told), program, unit, extra or {}, lead)


def _program(
    lines: list[str],
    study: Study,
    counts: Counts | None,
    held_out: Sequence[MDP] | Models | None,
    confidence: float,
    method: str | None,
    initial: npt.ArrayLike | None,
) -> dict[str, Any]:
    """What the program's template needs; imports of the source go to the top."""
    own = not study.divergence.is_built_in
    divergence = "divergence" if own else f"rm.{study.divergence!r}"
    if own and not any(line.startswith("divergence = ") for line in lines):
        lines.append("divergence = ...  # yours")
    doubt = divergence
    if study.function is not None:
        doubt = "set_at, levels=levels"
        lines += [] if any(line.startswith("set_at = ") for line in lines) else ["set_at = ...  # yours"]
        lines.append(f"levels = [{', '.join(f'{level:.6g}' for level in study.sweep.curve[study.sweep.name])}]")
    place = np.asarray(initial)
    if place.ndim and not any(line.startswith("initial = ") for line in lines):
        lines.append("initial = ...  # yours")
    level = study.sweep.points[study.sweep.shown].level
    of_function = study.function is not None
    radius = "advice.radii" if isinstance(study.radius, np.ndarray) else repr(study.radius)
    worlds = [
        *(["held_out"] if isinstance(held_out, Models) else [] if held_out is None else ["*held_out"]),
        *(["rm.worlds.Plausible(counts, 100, seed=1)"] if counts is not None else []),
        f"rm.worlds.RandomKernels({divergence}, {radius}, 50)",
        f"rm.worlds.Adversary(rm.Constrained({divergence}, {radius}))",
        *(["rm.worlds.Adversary(set_at(levels[-1]))"] if study.function is not None else []),
    ]
    evidence = f", counts=counts, confidence={confidence!r}" if counts is not None else ""
    evidence += f", method={method!r}" if counts is not None and method is not None else ""
    evidence += ", held_out=held_out" if held_out is not None else ""
    return {
        "imports": sorted({"import robustmdp as rm", *(line for line in lines if line.startswith("import "))}),
        "source": [line for line in lines if not line.startswith("import ")],
        "doubt": doubt,
        "weights": "" if evidence or of_function else f", rm.levels_for(mdp, {divergence}, count={LEVELS})",
        "shown": f"set_at({level!r})" if of_function else f"rm.Penalized({divergence}, {level!r})",
        "evidence": evidence,
        "initial": "" if initial is None else ", initial=initial" if place.ndim else f", initial={place.item()!r}",
        "worlds": worlds,
    }
