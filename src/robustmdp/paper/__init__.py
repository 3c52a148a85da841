"""The paper's figures and claims and our own, one file per figure: Params, run -> records, check(records) -> claims."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from robustmdp import _checks
from robustmdp.paper.work import Experiment

NAMES = (
    "chain-diagrams",
    "connection",
    "statistical",
    "convergence",
    "inner-steps",
    "dmin",
    "markovian",
    "behaviour",
    "rates",
    "step-sizes",
    "limits",
    "exploration",
    "equivalence",
    "sample-efficiency",
    "memory",
)


def experiment_named(name: str) -> Experiment:
    """The experiment of a name on the command line.

    >>> experiment_named("inner-steps").TITLE
    'The number of inner steps'
    """
    if name not in NAMES:
        _checks.nearest("experiment", name, NAMES)
    return cast(Experiment, import_module(f"robustmdp.paper.{name.replace('-', '_')}"))
