"""Decisions that hold up when the model is wrong: robust Markov decision processes.

Names are loaded when first used, so that `import robustmdp` and the command line's help stay fast.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from robustmdp import engine as engine
    from robustmdp import paper as paper
    from robustmdp import problems as problems
    from robustmdp import testing as testing
    from robustmdp import theory as theory
    from robustmdp.ambiguity import L1 as L1
    from robustmdp.ambiguity import L2 as L2
    from robustmdp.ambiguity import Constrained as Constrained
    from robustmdp.ambiguity import Contamination as Contamination
    from robustmdp.ambiguity import CVaR as CVaR
    from robustmdp.ambiguity import EntropicRisk as EntropicRisk
    from robustmdp.ambiguity import EVaR as EVaR
    from robustmdp.ambiguity import Interval as Interval
    from robustmdp.ambiguity import LInf as LInf
    from robustmdp.ambiguity import MeanRisk as MeanRisk
    from robustmdp.ambiguity import Multipliers as Multipliers
    from robustmdp.ambiguity import Nominal as Nominal
    from robustmdp.ambiguity import Optimistic as Optimistic
    from robustmdp.ambiguity import Penalized as Penalized
    from robustmdp.ambiguity import SharedNoise as SharedNoise
    from robustmdp.ambiguity import SRectangular as SRectangular
    from robustmdp.ambiguity import Wasserstein as Wasserstein
    from robustmdp.ambiguity import WorstCase as WorstCase
    from robustmdp.ambiguity import worst_case as worst_case
    from robustmdp.app.study import Analysis as Analysis
    from robustmdp.app.study import Layout as Layout
    from robustmdp.app.study import analyse as analyse
    from robustmdp.divergences import KL as KL
    from robustmdp.divergences import Burg as Burg
    from robustmdp.divergences import ChiSquare as ChiSquare
    from robustmdp.divergences import CressieRead as CressieRead
    from robustmdp.divergences import Divergence as Divergence
    from robustmdp.divergences import Hellinger as Hellinger
    from robustmdp.divergences import JensenShannon as JensenShannon
    from robustmdp.divergences import TotalVariation as TotalVariation
    from robustmdp.io import read as read
    from robustmdp.io import read_distance as read_distance
    from robustmdp.io import read_interval as read_interval
    from robustmdp.io import read_log as read_log
    from robustmdp.io import read_outcomes as read_outcomes
    from robustmdp.io import read_policy as read_policy
    from robustmdp.io import write as write
    from robustmdp.io import write_interval as write_interval
    from robustmdp.learning import EpsilonGreedy as EpsilonGreedy
    from robustmdp.learning import GenerativeQLearning as GenerativeQLearning
    from robustmdp.learning import MarkovianQLearning as MarkovianQLearning
    from robustmdp.learning import MultilevelQLearning as MultilevelQLearning
    from robustmdp.learning import PlugIn as PlugIn
    from robustmdp.learning import learn_value as learn_value
    from robustmdp.learning import learn_worst_case as learn_worst_case
    from robustmdp.learning import resume as resume
    from robustmdp.learning import run_many as run_many
    from robustmdp.learning import schedules as schedules
    from robustmdp.models import MDP as MDP
    from robustmdp.models import Counts as Counts
    from robustmdp.models import Estimate as Estimate
    from robustmdp.models import RowSource as RowSource
    from robustmdp.models import Simulator as Simulator
    from robustmdp.models import Trajectory as Trajectory
    from robustmdp.models import estimate as estimate
    from robustmdp.models import to_gymnasium as to_gymnasium
    from robustmdp.operators import RobustBellman as RobustBellman
    from robustmdp.planning import AverageReward as AverageReward
    from robustmdp.planning import DualAscent as DualAscent
    from robustmdp.planning import FiniteHorizon as FiniteHorizon
    from robustmdp.planning import PolicyIteration as PolicyIteration
    from robustmdp.planning import TotalReward as TotalReward
    from robustmdp.planning import ValueIteration as ValueIteration
    from robustmdp.planning import evaluate as evaluate
    from robustmdp.planning import reach as reach
    from robustmdp.planning import solve as solve
    from robustmdp.result import Solution as Solution
    from robustmdp.result import Status as Status
    from robustmdp.tuning import CurveTable as CurveTable
    from robustmdp.tuning import StressTable as StressTable
    from robustmdp.tuning import Suggestion as Suggestion
    from robustmdp.tuning import levels_for as levels_for
    from robustmdp.tuning import matching_radius as matching_radius
    from robustmdp.tuning import matching_weight as matching_weight
    from robustmdp.tuning import radius_from_counts as radius_from_counts
    from robustmdp.tuning import robustness_curve as robustness_curve
    from robustmdp.tuning import stress as stress
    from robustmdp.tuning import suggest as suggest
    from robustmdp.tuning import worlds as worlds

_ROOMS = {
    "app.study": "Analysis Layout analyse",
    "ambiguity": """
        CVaR Constrained Contamination EVaR EntropicRisk Interval L1 L2 LInf MeanRisk Multipliers Nominal
        Optimistic Penalized SRectangular SharedNoise Wasserstein WorstCase worst_case
    """,
    "divergences": "KL Burg ChiSquare CressieRead Divergence Hellinger JensenShannon TotalVariation",
    "io": "read read_distance read_interval read_log read_outcomes read_policy write write_interval",
    "learning": """
        EpsilonGreedy GenerativeQLearning MarkovianQLearning MultilevelQLearning PlugIn learn_value
        learn_worst_case resume run_many schedules
    """,
    "models": "MDP Counts Estimate RowSource Simulator Trajectory estimate to_gymnasium",
    "operators": "RobustBellman",
    "planning": """
        AverageReward DualAscent FiniteHorizon PolicyIteration TotalReward ValueIteration evaluate reach solve
    """,
    "result": "Solution Status",
    "tuning": """
        CurveTable StressTable Suggestion levels_for matching_radius matching_weight radius_from_counts
        robustness_curve stress suggest worlds
    """,
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}

_WHOLE_ROOMS = ("engine", "paper", "problems", "testing", "theory")
_RENAMED = {"experiments": "paper"}  # to be removed in 0.3

__all__ = sorted([*_HOMES, *_WHOLE_ROOMS])


def __getattr__(name: str) -> Any:
    if name in _WHOLE_ROOMS:
        return import_module(f"robustmdp.{name}")
    if name in _RENAMED:
        warnings.warn(f"rm.{name} is now rm.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'robustmdp' has no attribute {name!r}")
    value = getattr(import_module(f"robustmdp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
