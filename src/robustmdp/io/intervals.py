"""`read_interval` and `write_interval`: models whose transitions have intervals, as Storm and PRISM write them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp._files import resolve_target
from robustmdp.io.bounds import Bounded, with_nominal
from robustmdp.io.explicit import Explicit
from robustmdp.io.files import find_file, warn_of_stays, write_model
from robustmdp.io.formats import check_ability, chosen, model_files
from robustmdp.io.meta import Meta, read_together
from robustmdp.io.rows import Read, model_of
from robustmdp.models import MDP

if TYPE_CHECKING:
    from robustmdp.ambiguity import Interval


_DEFAULT_DISCOUNT = float("1")  # an object of its own: a 1.0 that a user passes overrides the notes, this one does not


def read_interval(
    path: str | os.PathLike[str],
    discount: float = _DEFAULT_DISCOUNT,
    *,
    reward: str | None = None,
    format: str | None = None,
) -> tuple[MDP, Interval]:
    r"""A model whose transitions have intervals, and these: { P : lower <= P <= upper, sum P = 1 } at each pair.

    The model has p = lower + t (upper - lower) with t = (1 - sum lower)/(sum upper - sum lower) in each row.
    Transitions that can never get mass are left out, intervals of the same successor are added. A number
    is an interval of width 0. Every file is checked as in `read`; an error names file, line, state and action.

    Parameters
    ----------
    path : a .drn file of Storm, or a .tra file of PRISM or its stem
    discount : float in [0, 1], instead of the one that `write_interval` noted beside the file
        By default the noted one, and 1 where there are no notes: these formats hold no discount.
    reward : the name of a reward model (Storm) or reward structure (PRISM), by default the first
        Its rewards must be numbers.
    format : "drn" or "prism", by default from the extension

    Returns
    -------
    mdp : MDP, with labels and initial states
    intervals : Interval with `lower` and `upper`, (nnz,) in the order of the model's transitions

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "coin.tra")
    >>> _ = file.write_text("2 2 3\n0 0 0 [0.2,0.6]\n0 0 1 [0.4,1]\n1 0 1 1\n")
    >>> mdp, intervals = read_interval(file)
    >>> mdp.probabilities.round(6).tolist(), mdp.discount
    ([0.36, 0.64, 1.0], 1.0)
    >>> intervals.lower.tolist(), intervals.upper.tolist()
    ([0.2, 0.4, 1.0], [0.6, 1.0, 1.0])
    """
    _types.check_arguments(read_interval, locals())
    from robustmdp.ambiguity import Interval

    file, kind = find_file(path, format)
    check_ability("intervals", file, kind)

    def build(meta: Meta | None) -> tuple[Read, Bounded]:
        columns = kind.open(file, numbered=meta is not None, intervals=True, reward=reward)
        opened = with_nominal(columns, None if meta is None else meta.probabilities)
        gamma = meta.discount if meta is not None and discount is _DEFAULT_DISCOUNT else discount
        return model_of(opened.columns, meta, _checks.model_discount(gamma)), opened

    found, opened = read_together(model_files(file, kind), kind.read_notes, build)
    warn_of_stays([found], file.name)
    return found.mdp, Interval(*_bounds_of(found.mdp, opened))


def _bounds_of(mdp: MDP, opened: Bounded) -> tuple[FloatArray, FloatArray]:
    """Those of the model's transitions: states that the file does not leave have stayed, explicit ends are gone."""
    is_left = np.zeros(int(opened.columns.columns.state.max()) + 1, bool)
    is_left[opened.columns.columns.state] = True
    is_left = np.append(is_left, np.zeros(max(mdp.n_states - len(is_left), 0), bool))
    in_file = is_left[np.repeat(mdp.states, np.diff(mdp.indptr))]
    both = []
    for bounds in (opened.lower, opened.upper):
        full = np.ones(mdp.nnz)
        full[in_file] = bounds[: np.count_nonzero(in_file)]
        both.append(full)
    return both[0], both[1]


def write_interval(
    mdp: MDP, intervals: Interval, path: str | os.PathLike[str], *, format: str | None = None, meta: bool = True
) -> Path:
    """A model and the intervals of its transitions to a file, which appears whole or not at all; returns its path.

    `read_interval` gives the model and every bit of the bounds back. What the format cannot hold goes to
    `<path>.meta.json`, as in `write`; so do the model's probabilities where they are not those that the bounds imply.

    Parameters
    ----------
    mdp : MDP
    intervals : Interval of that model
    path : a .drn or .tra file
    format : "drn" or "prism", by default from the extension
    meta : False leaves no meta file and warns, naming what is lost

    >>> import pathlib, tempfile
    >>> import robustmdp as rm
    >>> world = rm.problems.two_state(0.5, 0.9)
    >>> intervals = rm.Interval(0.9 * world.probabilities, np.minimum(1.1 * world.probabilities, 1.0))
    >>> file = write_interval(world, intervals, pathlib.Path(tempfile.mkdtemp(), "model.drn"))
    >>> read_interval(file)[0] == world
    True
    """
    _types.check_arguments(write_interval, {"path": path, "format": format, "meta": meta})
    from robustmdp.ambiguity import Interval

    for thing, wanted in ((mdp, MDP), (intervals, Interval)):
        if not isinstance(thing, wanted):
            raise TypeError(f"write_interval takes an MDP and an Interval: got {type(thing).__name__}")
    target = Path(os.fspath(path))
    resolve_target(target)
    kind = chosen(target, format)
    check_ability("intervals", target, kind)
    return write_model(Explicit.of(mdp, intervals.bounds_for(mdp)), target, kind, meta)
