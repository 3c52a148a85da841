"""Nonsense for any argument of any public callable: it works, or one sentence of ours names the argument."""

from __future__ import annotations

import inspect
import linecache
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import robustmdp as rm

theory, problems, schedules = rm.theory, rm.problems, rm.schedules
SOURCES = str(Path(rm.__file__).parent)


class Strange:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "Strange()"


NONSENSE: dict[str, Any] = {
    "None": None,
    "a word": "nonsense",
    "a number in quotation marks": "1",
    "bytes": b"1",
    "a negative number": -1,
    "zero": 0,
    "a fraction": 0.5,
    "a huge number": 1e300,
    "nan": np.nan,
    "inf": np.inf,
    "a flag": True,
    "a complex number": 1j,
    "an empty list": [],
    "a mixed list": [1, "a"],
    "a ragged list": [[1, 2], [3]],
    "a dict": {"a": 1},
    "a set": {1},
    "a tuple": (1, 2, 3),
    "an object": Strange(),
    "a class": rm.ValueIteration,
    "a function": lambda: None,
    "a generator": (number for number in range(3)),
    "an array of words": np.array(["a", "b"]),
    "an array": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "an array with nan": np.array([np.nan, 1.0]),
    "an empty array": np.empty((0, 3)),
    "a sparse matrix": sp.csr_array(np.eye(2)),
    "a date": np.datetime64("2020-01-01"),
}


@cache
def world() -> rm.MDP:
    return problems.two_state(0.5, 0.9)


@cache
def solution() -> rm.Solution:
    return rm.solve(world(), rm.Nominal())


@cache
def log() -> rm.Trajectory:
    return rm.Trajectory([0, 1, 0, 1], [0, 0, 0, 0], [1.0, 0.0, 1.0, 0.0], [1, 0, 1, 0])


@cache
def setting() -> Any:
    return theory.MarkovianSetting.chi_square(1.0, 0.5, 20, (0.05, 0.05), (1.0, 0.5))


def sample(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    return 1.0, int(rng.integers(2)), False


def step(state: int, action: int, value: float) -> tuple[int, float]:
    return int(value > 0), 1.0


def rows(first: int, last: int) -> Any:
    states = np.arange(first, last)
    return states, 0 * states, states, np.ones(len(states)), np.ones(len(states))


BALL = rm.Constrained(rm.KL(), 0.1)
PENALTY = rm.Penalized(rm.ChiSquare(), 1.0)
CHI2 = rm.ChiSquare()
EYE = np.eye(2)[:, None, :]
MARKOVIAN = {"n_pairs": 2, "discount": 0.5, "diameter": 1.0, "gradient_bound": 1.0, "outcome_bound": 2.0}
Call = tuple[Callable[..., Any], dict[str, Any]]


def calls(folder: Path) -> dict[str, Call]:
    """Each callable with arguments that are right; each of these is replaced in turn."""
    mdp, start = world(), [0.5, 0.5]
    solving = {"tol": 1e-3, "threads": 1, "callback": None}
    model = str(rm.write(mdp, folder / "model.csv"))
    intervals = rm.Interval(0.9 * mdp.probabilities, np.minimum(1.1 * mdp.probabilities, 1.0))
    drn = str(rm.write_interval(mdp, intervals, folder / "model.drn"))
    policy = str(rm.write(solution(), folder / "policy.csv"))
    visits, distances, checkpoint = (str(folder / name) for name in ("visits.csv", "distances.csv", "run.ckpt"))
    Path(visits).write_text("state,action,reward,next_state\n0,0,1,1\n1,0,0,0\n")
    Path(distances).write_text("0,1\n1,0\n")
    rm.GenerativeQLearning(PENALTY).run(mdp, 20, checkpoint=checkpoint)
    columns = {"state": [0, 1], "action": [0, 0], "next_state": [1, 0], "probability": [1.0, 1.0], "reward": [1.0, 0.0]}
    moves = {name: columns[name] for name in ("state", "action", "reward", "next_state")}
    run = {"world": mdp, "steps": 20, "seed": 0}
    return {
        "solve": (
            rm.solve,
            {"mdp": mdp, "ambiguity": BALL, "criterion": None, "solver": None, **solving, "start": [0.0, 0.0]},
        ),
        "evaluate": (
            rm.evaluate,
            {"mdp": mdp, "policy": [0, 0], "ambiguity": BALL, "criterion": None, **solving, "start": [0.0, 0.0]},
        ),
        "reach": (
            rm.reach,
            {
                "mdp": mdp.with_discount(1.0),
                "ambiguity": BALL,
                "goal": [1],
                "avoid": None,
                "within": 3,
                "minimise": False,
                "rewards": False,
                **solving,
            },
        ),
        "RobustBellman": (rm.RobustBellman, {"mdp": mdp, "ambiguity": BALL, "threads": 1}),
        "worst_case": (rm.worst_case, {"ambiguity": BALL, "p": [0.5, 0.5], "v": [0.0, 1.0]}),
        "matching_radius": (
            rm.matching_radius,
            {"mdp": mdp, "ambiguity": PENALTY, "initial": start, "threads": 1},
        ),
        "matching_weight": (
            rm.matching_weight,
            {"mdp": mdp, "ambiguity": BALL, "initial": start, "threads": 1},
        ),
        "levels_for": (rm.levels_for, {"mdp": mdp, "divergence": CHI2, "count": 3, "form": rm.Penalized, "threads": 1}),
        "radius_from_counts": (
            rm.radius_from_counts,
            {"counts": [3, 4], "divergence": CHI2, "confidence": 0.9, "method": "asymptotic", "seed": 0},
        ),
        "robustness_curve": (
            rm.robustness_curve,
            {
                "mdp": mdp,
                "divergence": CHI2,
                "radii": [0.1],
                "initial": start,
                "tol": 1e-3,
                "threads": 1,
                "progress": None,
            },
        ),
        "stress": (
            rm.stress,
            {
                "mdp": mdp,
                "policies": {"nominal": rm.Nominal()},
                "perturbed_worlds": [mdp],
                "initial": start,
                "tol": 1e-3,
                "threads": 1,
                "progress": None,
            },
        ),
        "suggest": (
            rm.suggest,
            {
                "mdp": mdp,
                "divergence": CHI2,
                "confidence": 0.9,
                "held_out": [mdp, mdp],
                "initial": start,
                "loss": 0.05,
                "seed": 0,
                "threads": 1,
                "progress": None,
            },
        ),
        "estimate": (rm.estimate, {"log": log(), "discount": 0.9, "smoothing": "half", "known": None}),
        "to_gymnasium": (rm.to_gymnasium, {"solution_or_mdp": mdp, "start": 0, "max_steps": 5}),
        # Files.
        "read": (rm.read, {"path": model, "discount": 0.9, "format": None}),
        "read_interval": (rm.read_interval, {"path": drn, "discount": 0.9, "reward": None, "format": None}),
        "read_policy": (rm.read_policy, {"path": policy, "mdp": mdp, "format": None}),
        "read_outcomes": (rm.read_outcomes, {"path": model, "discount": 0.9, "format": None}),
        "read_log": (rm.read_log, {"path": visits, "n_states": 2, "n_actions": 1, "discount": 0.9, "columns": None}),
        "read_distance": (rm.read_distance, {"path": distances}),
        "resume": (rm.resume, {"path": checkpoint, "world": None, "steps": 30, "learner": None}),
        "write": (rm.write, {"thing": mdp, "path": str(folder / "again.csv"), "format": "csv", "meta": True}),
        "write_interval": (
            rm.write_interval,
            {"mdp": mdp, "intervals": intervals, "path": str(folder / "again.drn"), "format": "drn", "meta": True},
        ),
        # Sets and divergences.
        "Penalized": (rm.Penalized, {"divergence": CHI2, "weight": 1.0}),
        "Constrained": (rm.Constrained, {"divergence": CHI2, "radius": 1.0}),
        "L1": (rm.L1, {"radius": 0.1, "weights": None, "support": "model"}),
        "L2": (rm.L2, {"radius": 0.1, "support": "model"}),
        "LInf": (rm.LInf, {"radius": 0.1, "support": "model"}),
        "Interval": (rm.Interval, {"lower": mdp.probabilities, "upper": mdp.probabilities}),
        "Wasserstein": (
            rm.Wasserstein,
            {"distance": [[0.0], [1.0]], "radius": 0.1, "support": "all", "coordinates": None},
        ),
        "Contamination": (rm.Contamination, {"share": 0.1, "support": "model"}),
        "CVaR": (rm.CVaR, {"level": 0.1}),
        "EVaR": (rm.EVaR, {"level": 0.1}),
        "EntropicRisk": (rm.EntropicRisk, {"aversion": 0.1}),
        "MeanRisk": (rm.MeanRisk, {"share": 0.1, "risk": rm.CVaR(0.1)}),
        "SRectangular": (rm.SRectangular, {"set": BALL}),
        "SharedNoise": (rm.SharedNoise, {"set": BALL}),
        "Optimistic": (rm.Optimistic, {"set": BALL}),
        "CressieRead": (rm.CressieRead, {"k": 3.0}),
        "Divergence": (
            rm.Divergence,
            {"name": "own", "conjugate": CHI2.conjugate, "conjugate_derivative": CHI2.conjugate_derivative},
        ),
        # Criteria, solvers, learners, schedules.
        "FiniteHorizon": (rm.FiniteHorizon, {"steps": 3, "terminal": None}),
        "ValueIteration": (rm.ValueIteration, {"stopping": "span", "max_steps": 100}),
        "PolicyIteration": (rm.PolicyIteration, {"max_steps": 100}),
        "DualAscent": (rm.DualAscent, {"steps": 10, "inner_steps": 10, "step": None, "warm_start": True}),
        "GenerativeQLearning": (
            rm.GenerativeQLearning,
            {
                "ambiguity": PENALTY,
                "burn_in": 0.1,
                "inner_steps": 1,
                "warm_start": True,
                "initial": 0.0,
                "averaging": False,
            },
        ),
        "MarkovianQLearning": (
            rm.MarkovianQLearning,
            {"ambiguity": PENALTY, "behaviour": None, "burn_in": 0.1, "count": "visits", "d_min": 0.1, "d_max": 0.5},
        ),
        "MultilevelQLearning": (rm.MultilevelQLearning, {"ambiguity": BALL, "ratio": 0.6}),
        "PlugIn": (rm.PlugIn, {"ambiguity": PENALTY, "behaviour": None, "trajectory": False}),
        "EpsilonGreedy": (rm.EpsilonGreedy, {"epsilon": 0.1}),
        "GenerativeQLearning.run": (rm.GenerativeQLearning(PENALTY).run, run),
        "MarkovianQLearning.run": (rm.MarkovianQLearning(PENALTY).run, run),
        "run_many": (
            rm.run_many,
            {"learners": [rm.GenerativeQLearning(PENALTY)], "world": mdp, "steps": 20, "seeds": [0], "threads": 1},
        ),
        "learn_value": (
            rm.learn_value,
            {"world": mdp, "policy": [0, 0], "ambiguity": BALL, "samples": 100, "confidence": 0.9, "seed": 0},
        ),
        "learn_worst_case": (
            rm.learn_worst_case,
            {"ambiguity": PENALTY, "outcomes": [0.0, 1.0], "value_range": (0.0, 1.0), "steps": None, "eta": 0.0},
        ),
        "schedules.Constant": (schedules.Constant, {"size": 0.1}),
        "schedules.Polynomial": (schedules.Polynomial, {"scale": 1.0, "power": 0.7, "offset": 1.0, "cap": 1.0}),
        "schedules.DualPolynomial": (schedules.DualPolynomial, {"scale": 1.0, "power": 0.7}),
        "schedules.Growing": (schedules.Growing, {"scale": 1.0, "power": 0.5}),
        "schedules.RescaledPolynomial": (schedules.RescaledPolynomial, {"power": 0.7}),
        # Models.
        "MDP.from_arrays": (
            rm.MDP.from_arrays,
            {"transitions": EYE, "rewards": [1.0, 0.0], "discount": 0.9, "state_names": None, "action_names": None},
        ),
        "MDP.from_rows": (rm.MDP.from_rows, {**columns, "discount": 0.9, "n_states": 2}),
        "MDP.from_frame": (rm.MDP.from_frame, {"frame": columns, "discount": 0.9}),
        "Trajectory.from_frame": (rm.Trajectory.from_frame, {"frame": moves, "n_states": 2, "discount": 0.9}),
        "MDP.from_noise": (
            rm.MDP.from_noise,
            {"step": step, "n_states": 2, "n_actions": 1, "noise": [0.5, 0.5], "discount": 0.9, "values": [0.0, 1.0]},
        ),
        "MDP.row": (mdp.row, {"state": 0, "action": 0}),
        "MDP.with_discount": (mdp.with_discount, {"discount": 0.5}),
        "MDP.with_rewards": (mdp.with_rewards, {"rewards": mdp.rewards}),
        "MDP.with_labels": (mdp.with_labels, {"labels": {"goal": [False, True]}}),
        "MDP.with_initial": (mdp.with_initial, {"initial": start}),
        "RowSource": (rm.RowSource, {"rows": rows, "n_states": 2, "n_actions": 1, "discount": 0.9}),
        "Simulator": (
            rm.Simulator,
            {"sample": sample, "n_states": 2, "n_actions": 1, "discount": 0.9, "reward_range": (0.0, 1.0), "start": 0},
        ),
        "Trajectory": (
            rm.Trajectory,
            {"state": [0], "action": [0], "reward": [1.0], "next_state": [0], "n_states": 1, "discount": 0.9},
        ),
        # Ready-made worlds.
        "problems.chain": (problems.chain, {"stay": 0.8, "restart": 0.0, "discount": 0.9}),
        "problems.two_state": (problems.two_state, {"stay": 0.8, "discount": 0.9}),
        "problems.two_state_value": (problems.two_state_value, {"stay": 0.8, "discount": 0.9, "weight": 1.0}),
        "problems.river_swim": (problems.river_swim, {"n_states": 6, "discount": 0.9}),
        "problems.machine_replacement": (
            problems.machine_replacement,
            {"n_ages": 5, "repair_success": 0.9, "discount": 0.9},
        ),
        "problems.garnet": (
            problems.garnet,
            {"n_states": 5, "n_actions": 2, "n_successors": 2, "discount": 0.9, "seed": 0},
        ),
        "problems.grid_world": (problems.grid_world, {"size": 3, "slip": 0.2, "discount": 0.9}),
        "problems.inventory": (problems.inventory, {"capacity": 3, "mean_demand": 2.0, "discount": 0.9}),
        "problems.pump": (problems.pump, {"failure": 0.01, "growth": 1.4, "n_levels": 4, "discount": 0.9}),
        # Theorems.
        "theory.curvature": (theory.curvature, {"weight": 1.0, "discount": 0.9, "form": "true"}),
        "theory.dual_error_bound": (theory.dual_error_bound, {"steps": 10, "setting": setting(), "form": "printed"}),
        "theory.dual_interval": (
            theory.dual_interval,
            {"divergence": CHI2, "weight": 1.0, "value_range": (0.0, 1.0), "form": "tight"},
        ),
        "theory.generative_bound": (
            theory.generative_bound,
            {"steps": 10, "inner_steps": 10, **MARKOVIAN, "initial_error": 1.0, "form": "printed"},
        ),
        "theory.generative_samples": (
            theory.generative_samples,
            {"epsilon": 0.5, **MARKOVIAN, "initial_error": 1.0, "form": "printed"},
        ),
        "theory.gradient_bound": (
            theory.gradient_bound,
            {"divergence": CHI2, "weight": 1.0, "value_range": (0.0, 1.0), "theta": (0.0, 1.0), "form": "true"},
        ),
        "theory.outcome_bound": (
            theory.outcome_bound,
            {"divergence": CHI2, "weight": 1.0, "value_range": (0.0, 1.0), "theta": (0.0, 1.0), "form": "true"},
        ),
        "theory.ratio_range": (
            theory.ratio_range,
            {"divergence": CHI2, "weight": 1.0, "value_range": (0.0, 1.0), "theta": (0.0, 1.0)},
        ),
        "theory.strong_convexity": (theory.strong_convexity, {"divergence": CHI2, "ratios": (0.0, 4.0)}),
        "theory.inner_rate": (
            theory.inner_rate,
            {"inner_steps": 10, "diameter": 1.0, "gradient_bound": 1.0, "n_pairs": 2, "form": "printed"},
        ),
        "theory.noise_constant": (theory.noise_constant, {"n_pairs": 2, "discount": 0.5, "outcome_bound": 2.0}),
        "theory.markovian_bound": (theory.markovian_bound, {"steps": 10, "setting": setting(), "initial_error": 1.0}),
        "theory.markovian_constants": (theory.markovian_constants, {"setting": setting(), "form": "printed"}),
        "theory.markovian_rate": (theory.markovian_rate, {"steps": 10, "setting": setting()}),
        "theory.MarkovianSetting": (
            theory.MarkovianSetting,
            {
                **MARKOVIAN,
                "curvature": 0.25,
                "smoothness": 0.5,
                "occupancy": theory.Occupancy(0.05, 0.05),
                "mixing": theory.Mixing(1.0, 0.5),
            },
        ),
        "theory.MarkovianSetting.chi_square": (
            theory.MarkovianSetting.chi_square,
            {
                "weight": 1.0,
                "discount": 0.5,
                "n_pairs": 20,
                "occupancy": (0.05, 0.05),
                "mixing": (1.0, 0.5),
                "form": "true",
            },
        ),
        "theory.mixing": (theory.mixing, {"mdp": problems.chain(restart=0.5), "behaviour": None, "start": 0}),
        "theory.occupancy": (theory.occupancy, {"mdp": problems.chain(restart=0.5), "behaviour": None, "start": 0}),
        "theory.stationary_distribution": (
            theory.stationary_distribution,
            {"mdp": problems.chain(restart=0.5), "behaviour": None, "start": 0},
        ),
        "theory.samples_needed": (
            theory.samples_needed,
            {
                "epsilon": 0.5,
                "n_states": 2,
                "n_actions": 2,
                "discount": 0.5,
                "weight": 1.0,
                "delta": 0.1,
                "method": "plug-in",
                "occupancy": (0.1, 0.2),
                "mixing": (1.0, 0.5),
            },
        ),
        "theory.statistical_lower_bound": (
            theory.statistical_lower_bound,
            {"epsilon": 0.5, "n_pairs": 2, "discount": 0.9, "weight": 1.0},
        ),
        "theory.statistical_upper_bound": (
            theory.statistical_upper_bound,
            {"samples_per_pair": 10, "n_pairs": 2, "discount": 0.9, "weight": 1.0, "delta": 0.1, "form": "sharp"},
        ),
        "theory.step_offsets": (theory.step_offsets, {"d_min": 0.1, "d_max": 0.2, "discount": 0.9}),
    }


SYNONYMS = {
    "path": (
        "a model must end in",
        "a policy must end in",
        "a log must end in",
        "a checkpoint must be",
        "distances must be in a",
    ),
    "held_out": ("held out must hold",),
    "conjugate": ("f* and f*'",),
    "conjugate_derivative": ("f* and f*'",),
    "thing": ("write takes an MDP or a Solution",),
    "mdp": ("write_interval takes an MDP",),
    "intervals": ("write_interval takes an MDP",),
    "log": ("the frame must",),
    "frame": ("the frame must",),
    "policies": ("policy must hold",),
    "seeds": ("a seed must",),
    "weight": ("gradient_bound must",),
    "rewards": ("the reward of each transition",),
    "transitions": ("the probabilit", "every state must have an action"),
}


def flaw_of(function: Callable[..., Any], arguments: dict[str, Any], name: str) -> str | None:
    """What is wrong with the answer to these arguments, one of which is nonsense; None if nothing is.

    What a user's own function raises is the user's. A value may be refused for what it does to another argument.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**arguments)
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        line = linecache.getline(last.filename, last.lineno or 0).strip()
        text = f"{type(problem).__name__} at {Path(last.filename).name}:{last.lineno}: {problem}"
        if last.filename == __file__ or callable(arguments[name]):
            return None
        ours = last.filename.startswith(SOURCES) and line.startswith("raise ")
        if not ours or not isinstance(problem, TypeError | ValueError):
            return f"raw {text}"
        names = (name,) if isinstance(problem, TypeError) else tuple(arguments)
        known = [*names, *SYNONYMS.get(name, ())]
        if "\n" in str(problem) or not any(word in str(problem) for word in known):
            return f"no sentence that names it: {text}"
    return None


@pytest.fixture(name="table", scope="module")
def _table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    return calls(tmp_path_factory.mktemp("files"))


# Made by others, not by users; and what hands its arguments on to one that is in the table.
RESULTS = {
    "Analysis",
    "Counts",
    "CurveTable",
    "Estimate",
    "Layout",
    "MDP",
    "Multipliers",
    "Solution",
    "Status",
    "StressTable",
    "Suggestion",
    "WorstCase",
    "analyse",
    "theory.GenerativeSamples",
    "theory.MarkovianConstants",
    "theory.Mixing",
    "theory.Occupancy",
    "theory.StepOffsets",
}


def public_callables() -> set[str]:
    rooms = {"problems.": problems, "theory.": theory}
    found = {name for name in rm.__all__ if callable(getattr(rm, name))}
    for prefix, room in rooms.items():
        found |= {prefix + name for name, thing in vars(room).items() if name[0] != "_" and callable(thing)}
    return {name for name in found if inspect.signature(_thing(name)).parameters}


def _thing(name: str) -> Any:
    room, _, rest = name.rpartition(".")
    return getattr(getattr(rm, room) if room else rm, rest)


NAMES = sorted(calls(Path(tempfile.mkdtemp())))


@pytest.mark.parametrize("name", NAMES)
def test_nonsense_is_refused_in_a_sentence_that_names_the_argument(
    table: dict[str, Call], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a word may be the name of a new file
    function, right = table[name]
    function(**right)
    flaws = {
        f"{argument}={kind}": flaw
        for argument in right
        for kind, value in NONSENSE.items()
        if (flaw := flaw_of(function, {**right, argument: value}, argument))
    }
    assert not flaws, f"{len(flaws)} of {len(right) * len(NONSENSE)}: " + "; ".join(
        f"{k}: {v}" for k, v in flaws.items()
    )


def test_the_table_is_complete() -> None:
    assert public_callables() - RESULTS <= set(NAMES)
