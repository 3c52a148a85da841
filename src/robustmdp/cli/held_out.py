"""Models that had no part in the problem's own: from files, or an environment with other parameters."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.cli.words import refuse_log

if TYPE_CHECKING:
    from robustmdp.cli.sources import Source
    from robustmdp.models import MDP
    from robustmdp.tuning.worlds import Models


def add_held_out(source: Source, word: str, files: tuple[str, ...], vary: tuple[str, ...]) -> None:
    """To what is known of a problem, with the Python that makes them."""
    _checks.must(not (files and vary), "give --held-out or --vary, not both")
    _checks.must(
        source.counts is None or not (files or vary), "a log is its own evidence: leave --held-out and --vary out"
    )
    if files:
        _add_files(source, files)
    if vary:
        _add_variants(source, word, vary)
    if source.held_out is not None:
        _check_sizes(source.mdp, source.held_out)


def _check_sizes(mdp: MDP, held_out: Models) -> None:
    for label, model in zip(held_out.labels or (), held_out.models, strict=True):
        _checks.must(
            (model.n_states, model.n_actions) == (mdp.n_states, mdp.n_actions),
            f"a held-out world must have the model's {mdp.n_states} states and {mdp.n_actions} actions: {label} has "
            f"{model.n_states} and {model.n_actions}",
        )


def _add_files(source: Source, files: tuple[str, ...]) -> None:
    """Every model of every file; craam's tables may hold several, by their column idoutcome."""
    from robustmdp import io
    from robustmdp.tuning.worlds import Models

    models, labels, code, discount = [], [], [], source.mdp.discount
    for file in files:
        refuse_log(file)
        several = Path(file).suffix.lower() in (".csv", ".parquet", ".pq")
        found = io.read_outcomes(file, discount) if several else [io.read(file, discount)]
        code.append(f"*rm.read_outcomes({file!r}, {discount!r})" if several else f"rm.read({file!r}, {discount!r})")
        models += found
        labels += [f"{Path(file).name} {number + 1}" if len(found) > 1 else file for number in range(len(found))]
    source.held_out = Models(models, labels=labels)
    source.code += ["held_out = rm.worlds.Models([", *(f"    {line}," for line in code), "])"]


def _add_variants(source: Source, word: str, vary: tuple[str, ...]) -> None:
    """The same environment with other parameters, each combination of them."""
    from robustmdp.tuning.worlds import environments

    _checks.must(word.startswith("gym:"), f"--vary must come with a gym: world: got {word!r}")
    parameters = [_parameter(each) for each in vary]
    name, known = word.removeprefix("gym:"), _parameters_of(word)
    for parameter, _, _ in parameters:
        if known and parameter not in known:
            _checks.nearest("the NAME of --vary", parameter, known)
    values: dict[str, Any] = {parameter: value for parameter, value, _ in parameters}
    _checks.must(len(values) == len(vary), f"--vary must name each parameter once: got {', '.join(vary)}")
    source.held_out = environments(name, source.mdp.discount, **values)
    written = ", ".join(f"{parameter}={text}" for parameter, _, text in parameters)
    source.code += ["import numpy as np"] if "np." in written else []
    arguments = f"    {name!r}, {source.mdp.discount!r}, {written}"
    source.code += ["held_out = rm.worlds.environments(", arguments, ")"]


def _parameters_of(word: str) -> list[str]:
    """What the environment can be made with; nothing where it takes anything."""
    from robustmdp.models import gymnasium

    env = gymnasium.made(word.removeprefix("gym:")).unwrapped
    found = inspect.signature(type(env).__init__).parameters
    anything = any(each.kind is each.VAR_KEYWORD for each in found.values())
    return [] if anything else [name for name in found if name not in ("self", "render_mode")]


def _parameter(word: str) -> tuple[str, Any, str]:
    """NAME=A,B,... or NAME=A..B:COUNT for numbers at equal distances: the name, the values, and these as Python."""
    import numpy as np

    name, _, values = word.partition("=")
    _checks.must(bool(name and values), f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
    low, dots, rest = values.partition("..")
    if not dots:
        listed = [_value(part) for part in values.split(",")]
        return name, listed, repr(listed)
    high, _, count = rest.partition(":")
    try:
        first, last, steps = float(low), float(high), int(count)
    except ValueError:
        _checks.fail(f"--vary must be NAME=A,B,... or NAME=A..B:COUNT: got {word!r}")
    _checks.must(1 < steps <= 10_000, f"COUNT of --vary must lie in 2..10000: got {steps}")
    return name, np.linspace(first, last, steps), f"np.linspace({first!r}, {last!r}, {steps})"


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word.lower(), word)
