"""From words to objects: problems, divergences, solvers, states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.cli.options import PROBLEMS

if TYPE_CHECKING:
    from robustmdp.ambiguity import Ambiguity
    from robustmdp.models import MDP

_SEED = 0
USUAL_DISCOUNT = 0.95  # of worlds that have none of their own


def parse_ambiguity(divergence: str, weight: float | None, radius: float | None) -> Ambiguity:
    """At most one of a weight and a radius."""
    import robustmdp as rm
    from robustmdp.divergences import divergence_named

    _checks.must(weight is None or radius is None, "give --weight or --radius, not both")
    chosen = divergence_named(divergence)
    if weight is not None:
        return rm.Penalized(chosen, weight)
    return rm.Nominal() if radius is None else rm.Constrained(chosen, radius)


def parse_problem(word: str, discount: float | None) -> MDP:
    """A ready-made world, one with sizes, a Gymnasium id, or a file."""
    from robustmdp import MDP, io, problems

    name, _, detail = word.partition(":")
    if name == "gym":
        _checks.must(bool(detail), "gym: must be followed by an environment's id, such as gym:FrozenLake-v1")
        return MDP.from_gymnasium(detail, USUAL_DISCOUNT if discount is None else discount)
    if is_file(word):
        return io.read(word, discount)
    plain: dict[str, Callable[..., MDP]] = {
        "chain": problems.chain,
        "river-swim": problems.river_swim,
        "machine-replacement": problems.machine_replacement,
        "inventory": problems.inventory,
    }
    options = {} if discount is None else {"discount": discount}
    if name in plain:
        _checks.must(not detail, f"problem {name} takes no sizes: got {word!r}")
        return plain[name](**options)
    if name == "garnet":
        states, actions, successors = _sizes(word, detail, "garnet:1000x5x10", 3)
        return problems.garnet(states, actions, successors, USUAL_DISCOUNT if discount is None else discount, _SEED)
    if name == "grid":
        (size,) = _sizes(word, detail, "grid:50", 1)
        return problems.grid_world(size, **options)
    _checks.nearest("problem", word, PROBLEMS)


def is_file(word: str) -> bool:
    """Does the word look like a file, there or not: with a path, or an extension?"""
    return Path(word).exists() or "/" in word or Path(word).suffix[1:].isalpha()


def parse_initial(mdp: MDP, word: str | None) -> int | None:
    """A state by its name or number."""
    if word is None:
        return None
    if mdp.state_names and word in mdp.state_names:
        return mdp.state_names.index(word)
    if word.isdigit():
        return int(word)
    if mdp.state_names:
        _checks.nearest("--initial", word, mdp.state_names)
    _checks.fail(f"--initial must be the number of a state: got {word!r}")


def parse_numbers(option: str, word: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in word.split(",")]
    except ValueError:
        _checks.fail(f"{option} must be numbers with commas between them: got {word!r}")


def parse_solver(word: str, known: Sequence[str]) -> Any:
    """None for the fastest exact one."""
    import robustmdp as rm

    if word not in known:
        _checks.nearest("solver", word, known)
    makers = {
        "value-iteration": rm.ValueIteration,
        "policy-iteration": rm.PolicyIteration,
        "dual-ascent": rm.DualAscent,
    }
    return makers[word]() if word in makers else None


def _sizes(word: str, detail: str, example: str, count: int) -> list[int]:
    parts = detail.split("x")
    _checks.must(
        len(parts) == count and all(part.isdigit() for part in parts), f"write the sizes as in {example}: got {word!r}"
    )
    return [int(part) for part in parts]
