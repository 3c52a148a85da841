"""The public names, listed once more, so that adding one is a decision."""

from __future__ import annotations

import inspect

import pytest

import robustmdp as rm

PUBLIC = [
    "Analysis",
    "AverageReward",
    "Burg",
    "CVaR",
    "ChiSquare",
    "Constrained",
    "Contamination",
    "Counts",
    "CressieRead",
    "CurveTable",
    "Divergence",
    "DualAscent",
    "EVaR",
    "EntropicRisk",
    "EpsilonGreedy",
    "Estimate",
    "FiniteHorizon",
    "GenerativeQLearning",
    "Hellinger",
    "Interval",
    "JensenShannon",
    "KL",
    "L1",
    "L2",
    "LInf",
    "Layout",
    "MDP",
    "MarkovianQLearning",
    "MeanRisk",
    "MultilevelQLearning",
    "Multipliers",
    "Nominal",
    "Optimistic",
    "Penalized",
    "PlugIn",
    "PolicyIteration",
    "RobustBellman",
    "RowSource",
    "SRectangular",
    "SharedNoise",
    "Simulator",
    "Solution",
    "Status",
    "StressTable",
    "Suggestion",
    "TotalReward",
    "TotalVariation",
    "Trajectory",
    "ValueIteration",
    "Wasserstein",
    "WorstCase",
    "analyse",
    "engine",
    "estimate",
    "evaluate",
    "learn_value",
    "learn_worst_case",
    "levels_for",
    "matching_radius",
    "matching_weight",
    "paper",
    "problems",
    "radius_from_counts",
    "reach",
    "read",
    "read_distance",
    "read_interval",
    "read_log",
    "read_outcomes",
    "read_policy",
    "resume",
    "robustness_curve",
    "run_many",
    "schedules",
    "solve",
    "stress",
    "suggest",
    "testing",
    "theory",
    "to_gymnasium",
    "worlds",
    "worst_case",
    "write",
    "write_interval",
]
PROBLEMS = [
    "chain",
    "garnet",
    "grid_world",
    "inventory",
    "machine_replacement",
    "pump",
    "river_swim",
    "two_state",
    "two_state_value",
]


def test_the_public_names() -> None:
    assert sorted(rm.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(rm))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = rm.nothing


def test_the_problems() -> None:
    functions = [name for name, thing in vars(rm.problems).items() if inspect.isfunction(thing)]
    assert sorted(functions) == PROBLEMS


@pytest.mark.parametrize("name", [name for name in PUBLIC if not inspect.ismodule(getattr(rm, name))])
def test_every_name_is_documented(name: str) -> None:
    thing = getattr(rm, name)
    assert thing is getattr(rm, name)
    assert inspect.getdoc(thing)
    assert thing.__module__.startswith("robustmdp.")


SIGNATURES = {
    "solve": "(mdp, ambiguity, *, criterion, solver, tol, threads, callback, start, engine, checkpoint)",
    "evaluate": "(mdp, policy, ambiguity, *, criterion, tol, threads, callback, start)",
    "worst_case": "(ambiguity, p, v)",
    "matching_radius": "(mdp, ambiguity, initial, *, threads)",
    "matching_weight": "(mdp, ambiguity, initial, *, threads)",
    "read": "(path, discount, *, format)",
    "write": "(thing, path, *, format, meta)",
    "radius_from_counts": "(counts, divergence, confidence, *, method, seed)",
    "robustness_curve": "(mdp, divergence, weights, *, radii, levels, initial, tol, threads, progress)",
    "stress": "(mdp, policies, perturbed_worlds, *, initial, tol, threads, progress)",
    "to_gymnasium": "(solution_or_mdp, *, start, max_steps)",
    "RobustBellman": "(mdp, ambiguity, *, threads)",
    "Penalized": "(divergence, weight)",
    "Constrained": "(divergence, radius)",
    "L1": "(radius, *, weights, support)",
    "LInf": "(radius, *, support)",
    "L2": "(radius, *, support)",
    "Interval": "(lower, upper)",
    "Contamination": "(share, *, support)",
    "CVaR": "(level)",
    "EVaR": "(level)",
    "EntropicRisk": "(aversion)",
    "MeanRisk": "(share, risk)",
    "Wasserstein": "(distance, radius, *, support, coordinates)",
    "Optimistic": "(set)",
    "SharedNoise": "(set)",
    "SRectangular": "(set)",
    "DualAscent": "(steps, inner_steps, step, warm_start)",
    "Divergence": "(name, conjugate, conjugate_derivative, *, slope_at_infinity)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    parameters = inspect.signature(getattr(rm, name)).parameters.values()
    words: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(parameter.name)
    assert f"({', '.join(words)})" == SIGNATURES[name]
