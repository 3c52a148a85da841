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
from robustmdp.app.study.names import Layout, Names
from robustmdp.app.study.report import body
from robustmdp.app.study.study import LEVELS, Progress, Study, study
from robustmdp.divergences import KL, FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.tuning.curve import SetAt
from robustmdp.tuning.suggestion import held_out_worlds
from robustmdp.tuning.trials import families_of
from robustmdp.tuning.worlds import Models


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(_display.Described):
    """A studied problem: its numbers in `study`, its `figures`, its page by `write`.

    `facts` are what the page says of the problem beside its sizes, as (label, text).
    """

    title: str
    study: Study
    names: Names
    facts: tuple[tuple[str, str], ...]
    program: Mapping[str, Any]
    unit: str = ""
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    lead: str | None = None

    @cached_property
    def code(self) -> str:
        """The main steps as a Python program; needs jinja2."""
        return render("program.py.j2", "robustmdp.app.study", **self.program)

    @property
    def advice(self) -> str:
        """The decision and its worth, by this model and its data alone."""
        return headline(self.study, self.unit)

    @property
    def headline(self) -> str:
        """What the page says first: the lead, else the advice."""
        return self.advice if self.lead is None else self.lead

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The page's plotly figures by name; needs plotly."""
        return figures_of(self.study, self.unit)

    def write(self, path: str | Path) -> Path:
        """One self-contained HTML page; needs plotly and jinja2."""
        own = {
            f"{slug(heading)}-{number}": item
            for heading, items in self.extra.items()
            for number, item in enumerate(items, 1)
            if hasattr(item, "to_plotly_json")
        }
        return write_page(Path(path), self.title, self.headline, body(self), {**self.figures, **own})

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
    facts: Sequence[tuple[str, str]] = (),
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
    unit, facts : of rewards, and what else the page should say of the problem, as (label, text)
    extra : more sections for the page, before all others: by heading, paragraphs, plotly figures, and tables as dicts
        of "header", "rows" and "caption"
    source : Python that makes `mdp` (and `counts` or `held_out`), for the program that the page ends with; by default
        it says that these are yours
    progress : called with (part, share done)

    >>> from robustmdp import problems
    >>> analyse(problems.river_swim(), initial=0).study.sweep.points[0].robust.status.code
    'converged'
    """
    _checks.must(
        layout is None or layout.n_states == mdp.n_states,
        f"the layout must have a place for each of the {mdp.n_states} states: got {layout and layout.n_states}",
    )
    known = held_out_worlds(held_out)
    evidence = {"levels": levels, "counts": counts, "held_out": known, "confidence": confidence, "method": method}
    found = study(
        mdp,
        KL() if divergence is None else divergence,
        evidence,
        initial=initial,
        policies=policies or {},
        worlds=families_of(worlds) if worlds else [],
        threads=threads,
        progress=progress or (lambda part, share: None),
    )
    program = {**evidence, "is_list": known is not held_out, **_program(source, found, evidence, initial)}
    return Analysis(title, found, Names(mdp, layout), tuple(facts), program, unit, extra or {}, lead)


def _program(
    source: str | None, study: Study, evidence: Mapping[str, Any], initial: npt.ArrayLike | None
) -> dict[str, Any]:
    """What the program's template needs beside the evidence; imports of the source go to the top."""
    place, of_function, own = np.asarray(initial), study.function is not None, not study.divergence.is_built_in
    yours = ["mdp", *(name for name in ("counts", "held_out") if evidence[name] is not None)]
    lines = (source or f"{', '.join(yours)} = ...  # yours").splitlines()
    for name, is_needed in (("divergence", own), ("set_at", of_function), ("initial", place.ndim > 0)):
        if is_needed and not any(line.startswith(f"{name} = ") for line in lines):
            lines.append(f"{name} = ...  # yours")
    if of_function:
        lines.append(f"levels = [{', '.join(f'{level:.6g}' for level in study.sweep.curve[study.sweep.name])}]")
    return {
        "imports": sorted({"import robustmdp as rm", *(line for line in lines if line.startswith("import "))}),
        "lines": [line for line in lines if not line.startswith("import ")],
        "divergence": "divergence" if own else f"rm.{study.divergence!r}",
        "of_function": of_function,
        "count": LEVELS,
        "level": study.sweep.points[study.sweep.shown].level,
        "radius": "advice.radii" if isinstance(study.radius, np.ndarray) else study.radius,
        "initial": "" if initial is None else ", initial=initial" if place.ndim else f", initial={place.item()!r}",
    }
