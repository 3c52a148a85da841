"""What a command is asked to study: a model, a log or an environment, with all that is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import robustmdp as rm
from robustmdp import _checks, _plugins
from robustmdp.app.commands.environments import PREFIX, layout_of, parse_environment, parse_value
from robustmdp.app.commands.words import (
    USUAL_DISCOUNT,
    is_file,
    kind_of_table,
    parse_bounded,
    parse_columns,
    parse_policy,
    parse_state,
    refuse_log,
)


@dataclass
class Source:
    """A problem; `code` is the Python that makes it, imports among it; `facts` are what a report says of it."""

    title: str
    mdp: rm.MDP
    code: list[str]
    bounds: rm.Interval | None = None
    counts: rm.Counts | None = None
    held_out: rm.worlds.Models | None = None
    initial: Any = None
    layout: rm.Layout | None = None
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
    names = ("discount", "initial", "held_out", "vary", "column")
    return parse_source(problem, **{name: options[name] for name in names if name in options})


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
    if word.startswith("minari:") or (is_file(word) and (column or kind_of_table(word) == "log")):
        source = _log(word, known, column)
    else:
        _checks.must(not column, f"--column must come with a log: got {word!r}")
        source = _environment(word, known) if word.startswith(PREFIX) else _model(word, discount)
    if initial is not None:
        source.initial = parse_state(source.mdp, initial, "--initial")
    _add_held_out(source, word, held_out, vary)
    return source


def _environment(word: str, discount: float) -> Source:
    environment = parse_environment(word)
    env, name, keywords = environment.make(), environment.identifier, environment.keywords
    code = [f"mdp = rm.MDP.from_gymnasium({name!r}, {discount!r}{keywords})"]
    source = Source(environment.text, rm.MDP.from_gymnasium(env, discount), code, layout=layout_of(env))
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    if start is not None:
        chosen = np.flatnonzero(np.asarray(start) > 0).tolist()
        source.initial = chosen[0] if len(chosen) == 1 else start
        if len(chosen) > 1:
            made = f"gymnasium.make({name!r}{keywords})"
            code += ["import gymnasium", f"initial = {made}.unwrapped.initial_state_distrib"]
    return source


def _log(word: str, discount: float, column: tuple[str, ...]) -> Source:
    columns = parse_columns(column)
    found = rm.estimate(rm.read_log(word, columns=columns), discount)
    counts = found.counts
    facts = [
        ("from", f"{word}: {counts.count.sum():,.0f} transitions, {len(counts.count):,} different"),
        ("never seen", f"{len(found.unseen):,} of {counts.n_states * counts.n_actions:,} pairs of state and action"),
    ]
    if certain := int((np.diff(counts.indptr) == 1).sum()):  # nature cannot bend these
        trusted = "nothing else is thought possible there, however few the visits"
        facts.append(("one outcome only", f"{certain:,} of {len(counts.state):,} pairs that were seen: {trusted}"))
    if left := int((counts.visits.sum(axis=1) == 0).sum()):
        states = "1 state: it is" if left == 1 else f"{left:,} states: they are"
        least = f"{counts.reward.min() + 0.0:g}"
        facts.append(("never left", f"{states} taken to stay and to earn the least reward, {least}"))
    facts.append(("model", "(n_i + 1/2)/(n + k/2): successor i was seen n_i times out of n, one of k that were seen"))
    given = "" if columns is None else f", columns={columns!r}"
    code = [f"mdp, counts, unseen = rm.estimate(rm.read_log({word!r}{given}), {discount!r})"]
    return Source(_title(word), found.model, code, counts=counts, facts=facts)


def _title(word: str) -> str:
    """A file without its folders."""
    return word if word.startswith("minari:") else Path(word).name


def _model(word: str, discount: float | None) -> Source:
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
    layout, side = None, math.isqrt(mdp.n_states)
    if name == "river-swim":
        layout = rm.Layout(1, mdp.n_states, ("drift", "swim"))
    elif name == "grid":
        layout = rm.Layout(side, side, mdp.action_names or ())
    return Source(word, mdp, [code], layout=layout)


def _add_held_out(source: Source, word: str, files: tuple[str, ...], vary: tuple[str, ...]) -> None:
    """Add models that had no part in the problem's own, with the Python that makes them."""
    _checks.must(not (files and vary), "give --held-out or --vary, not both")
    _checks.must(
        source.counts is None or not (files or vary), "a log is its own evidence: leave --held-out and --vary out"
    )
    if files:
        _add_files(source, files)
    if vary:
        _add_variants(source, word, vary)
    held_out, mdp = source.held_out, source.mdp
    if held_out is None:
        return
    for label, model in zip(held_out.labels or (), held_out.models, strict=True):
        _checks.must(
            (model.n_states, model.n_actions) == (mdp.n_states, mdp.n_actions),
            f"a held-out world must have the model's {mdp.n_states} states and {mdp.n_actions} actions: {label} has "
            f"{model.n_states} and {model.n_actions}",
        )


def _add_files(source: Source, files: tuple[str, ...]) -> None:
    """Every model of every file; craam's tables may hold several, by their column idoutcome."""
    models, labels, code, discount = [], [], [], source.mdp.discount
    for file in files:
        refuse_log(file)
        several = Path(file).suffix.lower() in (".csv", ".parquet", ".pq")
        found = rm.read_outcomes(file, discount) if several else [rm.read(file, discount)]
        code.append(f"*rm.read_outcomes({file!r}, {discount!r})" if several else f"rm.read({file!r}, {discount!r})")
        models += found
        labels += [f"{Path(file).name} {number + 1}" if len(found) > 1 else file for number in range(len(found))]
    source.held_out = rm.worlds.Models(models, labels=labels)
    source.code += ["held_out = rm.worlds.Models([", *(f"    {line}," for line in code), "])"]


def _add_variants(source: Source, word: str, vary: tuple[str, ...]) -> None:
    """The same environment with other parameters, each combination of them; those in `word` stay as they are."""
    from robustmdp.models.gymnasium import parameter_names

    _checks.must(word.startswith(PREFIX), f"--vary must come with a gym: world: got {word!r}")
    parameters = [_parameter(each) for each in vary]
    text, name, fixed = parse_environment(word)
    known = parameter_names(name, fixed)
    for parameter, _, _ in parameters:
        if known and parameter not in known:
            _checks.nearest("the NAME of --vary", parameter, known)
    values: dict[str, Any] = {parameter: value for parameter, value, _ in parameters}
    _checks.must(len(values) == len(vary), f"--vary must name each parameter once: got {', '.join(vary)}")
    same: dict[str, Any] = {"fixed": fixed, "name": f"{text} with another {' and '.join(values)}"} if fixed else {}
    source.held_out = rm.worlds.environments(name, source.mdp.discount, **same, **values)
    written = ", ".join(f"{parameter}={code}" for parameter, _, code in parameters)
    written += "".join(f", {key}={value!r}" for key, value in same.items())
    source.code += ["import numpy as np"] if "np." in written else []
    arguments = f"    {name!r}, {source.mdp.discount!r}, {written}"
    source.code += ["held_out = rm.worlds.environments(", arguments, ")"]


def _parameter(word: str) -> tuple[str, Any, str]:
    """NAME=A,B,... or NAME=A..B:COUNT for numbers at equal distances: the name, the values, and these as Python."""
    name, _, values = word.partition("=")
    _checks.must(bool(name and values), f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
    low, dots, rest = values.partition("..")
    if not dots:
        listed = [parse_value(part) for part in values.split(",")]
        return name, listed, repr(listed)
    high, _, count = rest.partition(":")
    try:
        first, last, steps = float(low), float(high), int(count)
    except ValueError:
        _checks.fail(f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
    _checks.must(1 < steps <= 10_000, f"COUNT of --vary must lie in 2..10000: got {steps}")
    return name, np.linspace(first, last, steps), f"np.linspace({first!r}, {last!r}, {steps})"
