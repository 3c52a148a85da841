"""What a command is asked to study: a model, a log or an environment, with all that is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmdp import _checks, _plugins
from robustmdp.app.commands.environments import PREFIX, layout_of, parse_environment
from robustmdp.app.commands.held_out import add_held_out
from robustmdp.app.commands.words import (
    USUAL_DISCOUNT,
    is_file,
    is_log,
    parse_bounded,
    parse_columns,
    parse_initial,
    parse_policy,
)

if TYPE_CHECKING:
    from robustmdp import Interval
    from robustmdp.app.study import Layout
    from robustmdp.models import MDP, Counts
    from robustmdp.tuning.worlds import Models


@dataclass
class Source:
    """A problem; `code` is the Python that makes it, imports among it; `facts` are what a report says of it."""

    title: str
    mdp: MDP
    code: list[str]
    bounds: Interval | None = None
    counts: Counts | None = None
    held_out: Models | None = None
    initial: Any = None
    layout: Layout | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)

    def policies(self, files: tuple[str, ...]) -> dict[str, Any]:
        """By the names of the files, with their folders where that is needed to tell them apart."""
        names = [Path(file).name for file in files]
        return {
            file if names.count(name) > 1 else name: parse_policy(file, self.mdp)
            for name, file in zip(names, files, strict=True)
        }


def source_of(problem: str, options: dict[str, Any]) -> Source:
    """From what was written."""
    return parse_source(
        problem,
        discount=options["discount"],
        initial=options["initial"],
        held_out=options.get("held_out", ()),
        vary=options.get("vary", ()),
        column=options["column"],
    )


def parse_source(
    word: str,
    *,
    discount: float | None,
    initial: str | None,
    held_out: tuple[str, ...] = (),
    vary: tuple[str, ...] = (),
    column: tuple[str, ...] = (),
) -> Source:
    """A ready-made world, a file with a model or a log, or a Gymnasium id; with held-out models where given."""
    known = USUAL_DISCOUNT if discount is None else discount
    if word.startswith("minari:") or (is_file(word) and (column or is_log(word))):
        source = _log(word, known, column)
    else:
        _checks.must(not column, f"--column must come with a log: got {word!r}")
        source = _environment(word, known) if word.startswith(PREFIX) else _model(word, discount)
    if initial is not None:
        source.initial = parse_initial(source.mdp, initial)
    add_held_out(source, word, held_out, vary)
    return source


def _environment(word: str, discount: float) -> Source:
    from robustmdp import MDP

    environment = parse_environment(word)
    env, name, keywords = environment.make(), environment.identifier, environment.keywords
    mdp = MDP.from_gymnasium(env, discount)
    code = [f"mdp = rm.MDP.from_gymnasium({name!r}, {discount!r}{keywords})"]
    source = Source(environment.text, mdp, code, layout=layout_of(env))
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    if start is not None:
        chosen = [state for state, chance in enumerate(start) if chance > 0]
        source.initial = chosen[0] if len(chosen) == 1 else start
        if len(chosen) > 1:
            source.code += [
                "import gymnasium",
                f"initial = gymnasium.make({name!r}{keywords}).unwrapped.initial_state_distrib",
            ]
    return source


def _log(word: str, discount: float, column: tuple[str, ...]) -> Source:
    from robustmdp import estimate, read_log

    columns = parse_columns(column)
    found = estimate(read_log(word, columns=columns), discount)
    counts = found.counts
    facts = [
        ("from", f"{word}: {counts.count.sum():,.0f} transitions, {len(counts.count):,} different"),
        ("never seen", f"{len(found.unseen):,} of {counts.n_states * counts.n_actions:,} pairs of state and action"),
        *_without_chance(counts),
        *_never_left(counts),
        ("model", "(n_i + 1/2)/(n + k/2): successor i was seen n_i times out of n, one of k that were seen"),
    ]
    given = "" if columns is None else f", columns={columns!r}"
    code = [f"mdp, counts, unseen = rm.estimate(rm.read_log({word!r}{given}), {discount!r})"]
    return Source(_title(word), found.model, code, counts=counts, facts=facts)


def _without_chance(counts: Counts) -> list[tuple[str, str]]:
    """Pairs that nature cannot bend."""
    count = int((np.diff(counts.indptr) == 1).sum())
    if not count:
        return []
    trusted = "nothing else is thought possible there, however few the visits"
    return [("one outcome only", f"{count:,} of {len(counts.state):,} pairs that were seen: {trusted}")]


def _never_left(counts: Counts) -> list[tuple[str, str]]:
    """What is made of states without any action that was seen."""
    count = int((counts.visits.sum(axis=1) == 0).sum())
    if not count:
        return []
    states = "1 state: it is" if count == 1 else f"{count:,} states: they are"
    return [("never left", f"{states} taken to stay and to earn the least reward, {counts.reward.min() + 0.0:g}")]


def _title(word: str) -> str:
    """A file without its folders."""
    return word if word.startswith("minari:") else Path(word).name


def _model(word: str, discount: float | None) -> Source:
    from robustmdp.app.study import Layout

    mdp, bounds = parse_bounded(word, discount)
    name, _, detail = word.partition(":")
    if bounds is not None:
        code = f"mdp, intervals = rm.read_interval({word!r}, {mdp.discount!r})"
        facts = [("from", word), ("intervals", "the model lies within those of the file")]
        return Source(_title(word), mdp, [code], bounds=bounds, facts=facts)
    if is_file(word):
        code = f"mdp = rm.read({word!r}, {mdp.discount!r})"
        return Source(_title(word), mdp, [code], facts=[("from", word)])
    if (point := _plugins.find("problem", word)) is not None:
        return Source(word, mdp, _plugins.code(point, "mdp", f"(discount={mdp.discount!r})"))
    makers = {"garnet": "garnet({}, discount={!r}, seed=0)", "grid": "grid_world({}, discount={!r})"}
    template = makers.get(name, name.replace("-", "_") + "({}discount={!r})")
    code = f"mdp = rm.problems.{template.format(detail.replace('x', ', '), mdp.discount)}"
    layouts = {"river-swim": (1, mdp.n_states, ("drift", "swim")), "grid": (_side(mdp), _side(mdp), mdp.action_names)}
    layout = Layout(*layouts[name]) if name in layouts else None  # type: ignore[arg-type]
    return Source(word, mdp, [code], layout=layout)


def _side(mdp: MDP) -> int:
    return math.isqrt(mdp.n_states)
