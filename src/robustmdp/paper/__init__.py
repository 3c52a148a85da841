"""The paper's figures and claims and our own, one file per figure, each with its `Experiment`."""

from __future__ import annotations

from importlib import import_module

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

    >>> experiment_named("inner-steps").title
    'The number of inner steps'
    """
    if name not in NAMES:
        _checks.nearest("experiment", name, NAMES)
    experiment: Experiment = import_module(f"robustmdp.paper.{name.replace('-', '_')}").EXPERIMENT
    return experiment
