"""What a command is asked to study: a model, a log or an environment, with all that is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.cli.words import USUAL_DISCOUNT, is_file, parse_initial, parse_problem

if TYPE_CHECKING:
    from robustmdp.analysis import Layout
    from robustmdp.models import MDP, Counts
    from robustmdp.tuning.worlds import Models

_MODEL_COLUMN = "idstatefrom"


@dataclass
class Source:
    """A problem; `code` is the Python that makes it, `told` what a report says of it."""

    title: str
    mdp: MDP
    code: list[str]
    counts: Counts | None = None
    held_out: Models | None = None
    initial: Any = None
    layout: Layout | None = None
    told: list[tuple[str, str]] = field(default_factory=list)


def parse_source(
    word: str,
    *,
    discount: float | None,
    initial: str | None,
    held_out: tuple[str, ...] = (),
    vary: tuple[str, ...] = (),
) -> Source:
    """A ready-made world, a file with a model or a log, or a Gymnasium id; with held-out models where given."""
    if word.startswith("gym:"):
        source = _environment(word, USUAL_DISCOUNT if discount is None else discount)
    elif word.startswith("minari:") or (is_file(word) and _is_log(word)):
        source = _log(word, discount)
    else:
        source = _model(word, discount)
    if initial is not None:
        source.initial = parse_initial(source.mdp, initial)
    _add_held_out(source, word, held_out, vary)
    return source


def _environment(word: str, discount: float) -> Source:
    from robustmdp import MDP
    from robustmdp.analysis import layout
    from robustmdp.models import gymnasium

    name = word.removeprefix("gym:")
    _checks.must(bool(name), "gym: must be followed by an environment's id, such as gym:FrozenLake-v1")
    env = gymnasium.made(name)
    mdp = MDP.from_gymnasium(env, discount)
    source = Source(
        name, mdp, [f"mdp = rm.MDP.from_gymnasium({name!r}, {discount!r})"], layout=layout.of_environment(env)
    )
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    if start is not None:
        chosen = [state for state, chance in enumerate(start) if chance > 0]
        source.initial = chosen[0] if len(chosen) == 1 else start
        if len(chosen) > 1:
            source.code += [
                "import gymnasium",
                "",
                f"initial = gymnasium.make({name!r}).unwrapped.initial_state_distrib",
            ]
    return source


def _log(word: str, discount: float | None) -> Source:
    from robustmdp import estimate, read_log

    known = USUAL_DISCOUNT if discount is None else discount
    found = estimate(read_log(word), known)
    counts = found.counts
    told = [
        ("from", f"{word}: {counts.count.sum():,.0f} transitions, {len(counts.count):,} different"),
        ("never seen", f"{len(found.unseen):,} of {counts.n_states * counts.n_actions:,} pairs of state and action"),
        ("model", "(n_i + 1/2)/(n + k/2) over the k successors that were seen"),
    ]
    code = [f"mdp, counts, unseen = rm.estimate(rm.read_log({word!r}), {known!r})"]
    return Source(word, found.model, code, counts=counts, told=told)


def _model(word: str, discount: float | None) -> Source:
    from robustmdp.analysis import Layout

    mdp = parse_problem(word, discount)
    name, _, detail = word.partition(":")
    if is_file(word):
        code = f"mdp = rm.read({word!r}, {mdp.discount!r})"
        return Source(word, mdp, [code], told=[("from", word)])
    makers = {"garnet": "garnet({}, discount={!r}, seed=0)", "grid": "grid_world({}, discount={!r})"}
    template = makers.get(name, name.replace("-", "_") + "({}discount={!r})")
    code = f"mdp = rm.problems.{template.format(detail.replace('x', ', '), mdp.discount)}"
    layouts = {"river-swim": (1, mdp.n_states, ("drift", "swim")), "grid": (_side(mdp), _side(mdp), mdp.action_names)}
    layout = Layout(*layouts[name]) if name in layouts else None  # type: ignore[arg-type]
    return Source(word, mdp, [code], layout=layout)


def _side(mdp: MDP) -> int:
    return math.isqrt(mdp.n_states)


def _add_held_out(source: Source, word: str, files: tuple[str, ...], vary: tuple[str, ...]) -> None:
    from robustmdp import io
    from robustmdp.tuning.worlds import Models, environments

    _checks.must(not (files and vary), "give --held-out or --vary, not both")
    discount = source.mdp.discount
    if files:
        models = [model for file in files for model in _models(io, file, discount)]
        source.held_out = Models(models)
        source.code.append(f"held_out = [rm.read(path, {discount!r}) for path in {list(files)!r}]")
    if vary:
        _checks.must(word.startswith("gym:"), f"--vary must come with a gym: world: got {word!r}")
        parameters = dict(_parameter(each) for each in vary)
        name = word.removeprefix("gym:")
        source.held_out = environments(name, discount, **parameters)  # type: ignore[arg-type]
        shown = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        source.code.append(f"held_out = rm.worlds.environments({name!r}, {discount!r}, {shown})")
    _checks.must(
        source.held_out is None or source.counts is None, "a log is its own evidence: leave --held-out and --vary out"
    )


def _models(io: Any, file: str, discount: float) -> list[MDP]:
    models: list[MDP] = io.read_outcomes(file, discount) if file.endswith((".csv", ".parquet", ".pq")) else [
        io.read(file, discount)
    ]  # fmt: skip
    return models


def _parameter(word: str) -> tuple[str, list[Any]]:
    """NAME=A,B,... or NAME=A..B:COUNT for numbers at equal distances."""
    name, _, values = word.partition("=")
    _checks.must(bool(name and values), f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
    low, dots, rest = values.partition("..")
    if dots:
        high, _, count = rest.partition(":")
        try:
            first, last, steps = float(low), float(high), int(count)
        except ValueError:
            _checks.fail(f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
        _checks.must(1 < steps <= 10_000, f"COUNT of --vary must lie in 2..10000: got {steps}")
        return name, [first + (last - first) * step / (steps - 1) for step in range(steps)]
    return name, [_value(part) for part in values.split(",")]


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word.lower(), word)


def _is_log(word: str) -> bool:
    """A table without craam's first column is a log."""
    from pathlib import Path

    path, suffix = Path(word), Path(word).suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq") or not path.is_file():
        return False
    if suffix == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return _MODEL_COLUMN not in file.readline(1 << 16).lower()
    from robustmdp.io.arrow import parquet_file

    with parquet_file(path) as file:
        return _MODEL_COLUMN not in file.schema_arrow.names
