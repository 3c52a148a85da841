"""From words to objects: problems, solvers, states, files."""

from __future__ import annotations

import glob
import importlib.util
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import robustmdp as rm
from robustmdp import _checks, _plugins
from robustmdp._files import resolve_target
from robustmdp.app.commands.environments import parse_environment
from robustmdp.app.commands.options import PROBLEMS

if TYPE_CHECKING:
    import numpy.typing as npt

USUAL_DISCOUNT = 0.95  # of worlds that have none of their own
TABLES = (".csv", ".parquet", ".pq", ".json")  # extensions of files with a row per state

_PLAIN = ("chain", "river-swim", "machine-replacement", "inventory", "pump")  # worlds without sizes
_EXTRAS = {
    ".parquet": (("pyarrow",), "parquet"),
    ".pq": (("pyarrow",), "parquet"),
    ".zst": (("pyarrow",), "parquet"),
    ".html": (("plotly", "jinja2"), "report"),
    ".htm": (("plotly", "jinja2"), "report"),
}


def parse_problem(word: str, discount: float | None) -> rm.MDP:
    """A ready-made world, one with sizes, a Gymnasium id, or a file."""
    name, _, detail = word.partition(":")
    usual = USUAL_DISCOUNT if discount is None else discount
    if name == "gym":
        environment = parse_environment(word)
        return rm.MDP.from_gymnasium(environment.identifier, usual, **environment.parameters)
    if is_file(word):
        refuse_log(word)
        return rm.read(word, discount)
    options: dict[str, Any] = {} if discount is None else {"discount": discount}
    if name in _PLAIN:
        _checks.must(not detail, f"problem {name} takes no sizes: got {word!r}")
        return getattr(rm.problems, name.replace("-", "_"))(**options)  # type: ignore[no-any-return]
    if name == "garnet":
        states, actions, successors = _sizes(word, detail, "garnet:1000x5x10", 3)
        return rm.problems.garnet(states, actions, successors, usual, seed=0)
    if name == "grid":
        (size,) = _sizes(word, detail, "grid:50", 1)
        return rm.problems.grid_world(size, **options)
    if (point := _plugins.find("problem", word)) is not None:
        return _plugins.build("problem", point, "return an MDP", _is_model, **options)  # type: ignore[no-any-return]
    files = sorted(path.name for path in Path().glob(f"{glob.escape(word)}.*"))
    _checks.nearest("problem", word, [*PROBLEMS, *_plugins.names("problem"), *files])


def _is_model(thing: object) -> bool:
    return isinstance(thing, rm.MDP)


def _sizes(word: str, detail: str, example: str, count: int) -> list[int]:
    parts = detail.split("x")
    is_right = len(parts) == count and all(part.isdigit() for part in parts)
    _checks.must(is_right, f"write the sizes as in {example}: got {word!r}")
    return [int(part) for part in parts]


def parse_bounded(word: str, discount: float | None) -> tuple[rm.MDP, rm.Interval | None]:
    """The same, and the intervals of its transitions where it is a file that has them."""
    from robustmdp.io.choices import IntervalsError

    try:
        return parse_problem(word, discount), None
    except IntervalsError:
        return read_bounded(word, discount)


def read_bounded(path: str, discount: float | None, format: str | None = None) -> tuple[rm.MDP, rm.Interval]:
    """A file with intervals; with the discount that was noted beside it, if any, unless one is given."""
    options: dict[str, Any] = {} if discount is None else {"discount": discount}
    return rm.read_interval(path, **options, format=format)


def parse_policy(path: str, mdp: rm.MDP, steps: int | None = None) -> npt.NDArray[Any]:
    """A policy from a file; one that depends on the step must come with as many steps, those of --horizon."""
    policy = rm.read_policy(path, mdp)
    if policy.ndim > (2 if policy.dtype.kind == "f" else 1):
        name, count = Path(path).name, len(policy)
        wanted = f"robustmdp solve --horizon {count}" if steps is None else f"--horizon {count}, not {steps}"
        _checks.must(count == steps, f"a policy for each of {count} steps must come with {wanted}: got {name}")
    return policy


def is_file(word: str) -> bool:
    """Whether the word looks like a file, there or not: with a path, or an extension. Ready-made worlds come first."""
    known = word.partition(":")[0] in {name.partition(":")[0] for name in PROBLEMS}
    there = Path(word).exists() or Path(f"{word}.tra").exists()  # PRISM's files have a stem in common
    return not known and (there or "/" in word or Path(word).suffix[1:].isalpha())


def kind_of_table(word: str) -> Literal["log", "model", "either", None]:
    """What a file is by its columns: a log of transitions, a model, perhaps either; None where it is no table."""
    from robustmdp.io.table_files import kind_of_file

    return kind_of_file(Path(word))


def refuse_log(word: str) -> None:
    """Refuse a log where a model is wanted."""
    how = f"robustmdp estimate {shlex.quote(word)} --out model.csv"
    _checks.must(
        kind_of_table(word) != "log",
        f"{word} must be a model, not a log: make one of it with {how}; if it is a model, drop the columns that only "
        "a log has",
    )


def check_log(word: str) -> None:
    """Refuse a model where a log is wanted, and a table that may be either."""
    kind = kind_of_table(word)
    both = ", and its columns are those of both" if kind == "either" else ""
    how = f"see robustmdp solve {shlex.quote(word)}, or name its columns as in --column state=state"
    _checks.must(kind not in ("model", "either"), f"{word} must be a log, not a model{both}: {how}")


def parse_state(mdp: rm.MDP, word: str, option: str, others: Sequence[str] = ()) -> int:
    """The number of a state that an option gives by name or number; `others` are more words that it knows."""
    from robustmdp.models.space import place_of_name

    if word.isdecimal() and word not in (mdp.state_names or ()):
        _checks.must(
            int(word) < mdp.n_states or option == "--initial",
            f"{option} must hold states in 0..{mdp.n_states - 1}: got {word}",
        )
        return int(word)
    return place_of_name(option, word, mdp.state_names, others)


def parse_states(mdp: rm.MDP, word: str | None, option: str, others: Sequence[str] = ()) -> str | list[int] | None:
    """A label of the model, or one of `others` instead, or states by name or number with commas between them."""
    known = others or list(mdp.labels)
    if word is None or word in known:
        return word
    return [parse_state(mdp, part.strip(), option, known) for part in word.split(",")]


def parse_columns(words: Sequence[str]) -> dict[str, str | None] | None:
    """What a log calls its columns; NAME= leaves one out."""
    pairs = [word.partition("=") for word in words]
    for word, (name, sign, _) in zip(words, pairs, strict=True):
        _checks.must(bool(name and sign), f"--column must be NAME=OWN, as in terminated=done: got {word!r}")
    return {name: own or None for name, _, own in pairs} or None


def check_out(out: str | None, *extensions: str, option: str = "--out", besides: Sequence[str] = ()) -> None:
    """Say before anything is computed what cannot be written, or would replace what another option names to read.

    `besides` are the names of parameters that may name the same file.
    """
    if out is None:
        return
    path = Path(out)
    target = resolve_target(path, option)
    known = not extensions or path.name.lower().endswith(extensions)
    _checks.must(known, f"{option} must end in {' or '.join(extensions)}: got {out!r}")
    packages, extra = _EXTRAS.get(path.suffix.lower(), ((), ""))
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ImportError(f"{package} must be installed to write {path.name}: pip install 'robustmdp[{extra}]'")
    _refuse_input(target, option, besides)
    folder = next(parent for parent in target.parents if parent.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        _checks.fail(f"{option} must be a file that can be written: {folder}: {(problem.strerror or '').lower()}")


def check_model_out(out: str | None, format: str | None = None, option: str = "--out") -> None:
    """The same for a model, in a format by its name or extension."""
    if out is not None:
        from robustmdp.io.formats import chosen, main_file, model_files
        from robustmdp.io.meta import check_replaceable

        kind = chosen(Path(out), format)
        file = main_file(Path(out), kind)
        check_out(str(file), option=option)
        if kind.read_notes is not None:
            check_replaceable(model_files(file, kind))


def _refuse_input(target: Path, option: str, besides: Sequence[str]) -> None:
    """Refuse to replace a file that is read: nobody could tell afterwards what was asked."""
    if not target.exists():
        return
    for name, given in click.get_current_context().params.items():
        if name in ("out", "target", "checkpoint", *besides):
            continue
        for word in given if isinstance(given, tuple) else (given,):
            if isinstance(word, str) and any(target.samefile(path) for path in _files_of(word)):
                _checks.fail(f"{option} must be another file than the input: got {word}")


def _files_of(word: str) -> list[Path]:
    """The files that are read for a word of the command line, if there are any: a model, perhaps by its stem; notes."""
    try:
        return [path for end in ("", ".tra", ".meta.json") if (path := Path(f"{word}{end}")).is_file()]
    except (OSError, ValueError):  # no path at all
        return []


def parse_numbers(option: str, word: str | None) -> list[float] | None:
    """Numbers with commas between them."""
    if word is None:
        return None
    try:
        return [float(part) for part in word.split(",")]
    except ValueError:
        _checks.fail(f"{option} must be numbers with commas between them: got {word!r}")


def parse_range(option: str, word: str | None) -> tuple[float, float] | None:
    """Two numbers with dots between them.

    >>> parse_range("--reward-range", "-1..0.5")
    (-1.0, 0.5)
    """
    if word is None:
        return None
    low, _, high = word.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        _checks.fail(f"{option} must be two numbers with dots between them, as in 0..1: got {word!r}")
    _checks.must(ends[0] <= ends[1], f"{option} must rise: got {word}")
    return ends


def parse_solver(word: str, known: Sequence[str]) -> Any:
    """None for the fastest exact one."""
    if word not in known:
        _checks.nearest("solver", word, known)
    makers = {
        "value-iteration": rm.ValueIteration,
        "policy-iteration": rm.PolicyIteration,
        "dual-ascent": rm.DualAscent,
    }
    return makers[word]() if word in makers else None
