"""`solve --engine`: the model in shards, on a Ray cluster or in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import robustmdp as rm
from robustmdp.app.commands.options import combine

MAPPED = ".safetensors"  # a file of which each shard opens its own part, and to which a solution is written with Q

_ENGINES = ("ray", "serial")
_SOLVERS = ("auto", "value-iteration", "policy-iteration")
engine_options = combine(
    click.option("--engine", metavar="NAME", help="Cut the model into shards: ray or serial."),
    click.option("--address", help="Of a Ray cluster; a local Ray if not given."),
    click.option("--workers", type=int, metavar="N", help="Shards; on Ray one for each node if not given."),
    click.option("--checkpoint", type=click.Path(), help="Save values here; the same command goes on."),
)


def parse_engine(options: Mapping[str, Any]) -> Any:
    """The engine that was asked for, or None; combinations that make no sense are refused before any work."""
    from robustmdp import _checks

    name, workers = options["engine"], options["workers"]
    if name is None:
        for option, able in (("address", "ray"), ("workers", "ray or serial"), ("checkpoint", "ray or serial")):
            _checks.must(options[option] is None, f"--{option} must come with --engine {able}")
        return None
    if name not in _ENGINES:
        _checks.nearest("--engine", name, _ENGINES)
    _checks.must(options["address"] is None or name == "ray", "--address must come with --engine ray: got serial")
    for option in ("horizon", "total", "average", "policy"):
        typed = options[option] not in (None, False)
        _checks.must(not typed, f"--engine must come without --{option}: shards find the best policy, with a discount")
    moves = (options["set_name"] or "").lower() == "wasserstein"
    _checks.must(not moves, "--engine must come without --set wasserstein, which moves mass between all states")
    solver, checkpoint = options["solver"], options["checkpoint"]
    _checks.must(solver in _SOLVERS, f"--engine must come with --solver {', '.join(_SOLVERS)}: got {solver}")
    if checkpoint is not None:
        _checks.must(not Path(checkpoint).is_dir(), f"--checkpoint must be a file: {checkpoint} is a folder")
        is_writable = Path(checkpoint).absolute().parent.is_dir()
        _checks.must(is_writable, f"--checkpoint must be a file in a folder that is there: got {checkpoint}")
    _checks.must(workers is None or workers >= 1, f"--workers must be at least 1: got {workers}")
    if name == "serial":
        return rm.engine.Serial(workers or 1)
    engine = rm.engine.Ray(options["address"], workers)
    engine.check()
    return engine


@contextmanager
def connection(engine: Any) -> Iterator[None]:
    """Ray is started or found once, for the solve and for what is written afterwards; its failures become messages."""
    if not hasattr(engine, "connected"):
        yield
        return
    try:
        with engine.connected():
            yield
    except RuntimeError as problem:  # no node has a core, or shards were lost again and again
        raise click.ClickException(str(problem)) from None


def is_mapped(problem: str, engine: Any) -> bool:
    """Whether each shard opens its own part of the file."""
    return engine is not None and problem.lower().endswith(MAPPED)


def open_mapped(problem: str, discount: float | None) -> Any:
    """What is known of a model before any of its rows is read."""
    from robustmdp import _checks
    from robustmdp.io.mapped import MappedModel

    _checks.must(discount is None, f"--discount must be left out with --engine: {problem} has its own")
    model = MappedModel.open(problem)
    _checks.must(model.discount < 1.0, f"--engine must come with a model whose discount is below 1: {problem} has 1")
    return model


def write(solution: Any, path: str) -> None:
    """A row per state; with shards also the worst case and all tables, as one file in our own format."""
    if path.lower().endswith(MAPPED):
        solution.write(path)
    else:
        rm.write(solution, path)


def way_on() -> str:
    """That a checkpoint was left, if it was."""
    path = click.get_current_context().params.get("checkpoint")
    return f"; the same command goes on from {path}" if path is not None and Path(path).exists() else ""


def q_for_json(solution: Any) -> dict[str, Any]:
    """Q, or nothing where it is too large to come from the shards; --out writes it."""
    import numpy as np

    return {"q": solution.q if isinstance(solution.q, np.ndarray) else None}


def step_text(step: Any) -> str:
    """One line of progress, within a screen's width; with shards also what a sweep moves and who is slowest."""
    traffic = getattr(step, "traffic", None)
    if traffic is None:
        return f"Step {step.step:,}: certified error about {step.error_bound:.3g}"
    return (
        f"Step {step.step:,}: certified error {step.error_bound:.2g}, {step.sweeps:,} sweeps of "
        f"{traffic.bytes_sent / 1e6:,.3g} MB, slowest shard {traffic.slowest_shard}: {traffic.seconds:.2f} s"
    )
