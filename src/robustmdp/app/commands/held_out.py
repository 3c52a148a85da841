"""Models that had no part in the problem's own: from files, or an environment with other parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.app.commands.environments import PREFIX, parse_environment, parse_value
from robustmdp.app.commands.words import refuse_log

if TYPE_CHECKING:
    from robustmdp.app.commands.sources import Source
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
    """The same environment with other parameters, each combination of them; those in `word` stay as they are."""
    from robustmdp.models.gymnasium import parameter_names
    from robustmdp.tuning.worlds import environments

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
    source.held_out = environments(name, source.mdp.discount, **same, **values)
    written = ", ".join(f"{parameter}={code}" for parameter, _, code in parameters)
    written += "".join(f", {key}={value!r}" for key, value in same.items())
    source.code += ["import numpy as np"] if "np." in written else []
    arguments = f"    {name!r}, {source.mdp.discount!r}, {written}"
    source.code += ["held_out = rm.worlds.environments(", arguments, ")"]


def _parameter(word: str) -> tuple[str, Any, str]:
    """NAME=A,B,... or NAME=A..B:COUNT for numbers at equal distances: the name, the values, and these as Python."""
    import numpy as np

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
