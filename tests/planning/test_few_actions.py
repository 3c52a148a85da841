"""Along a family of levels, pairs that cannot matter are left out: the bounds must hold for the whole problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.planning import continuation
from robustmdp.planning.continuation import Walk, solve_along

WORLDS = {
    "garnet": lambda: rm.problems.garnet(150, 8, 6, 0.95, seed=3),
    "inventory": lambda: rm.problems.inventory(12),
    "grid": lambda: rm.problems.grid_world(9, discount=0.98),
    "lake": lambda: rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.97),
}
FAMILIES = {
    "chi-square weights": (rm.Penalized, rm.ChiSquare(), np.geomspace(30.0, 0.01, 18)),
    "KL radii": (rm.Constrained, rm.KL(), np.geomspace(1e-3, 2.0, 18)),
    "total variation radii": (rm.Constrained, rm.TotalVariation(), np.linspace(0.0, 0.6, 12)),
}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Leave out pairs in worlds of any size, and note which share of them was kept."""
    shares: list[float] = []
    monkeypatch.setattr(continuation, "_LARGE", 0)
    monkeypatch.setattr(continuation, "_WORTH_LEAVING_OUT", 0.9)
    plain = Walk._keep

    def keep(self: Walk, kept: Any) -> None:
        shares.append(float(kept.mean()))
        plain(self, kept)

    monkeypatch.setattr(Walk, "_keep", keep)
    return shares


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", WORLDS)
def test_bounds_hold_for_the_whole_problem(world: str, family: str, eager: list[float]) -> None:
    mdp = WORLDS[world]()
    form, divergence, levels = FAMILIES[family]
    ambiguities = [form(divergence, level) for level in levels]
    stages = list(solve_along(mdp, [(np.log(a.level + 1e-9), a) for a in ambiguities], tol=1e-7))
    for ambiguity, stage in zip(ambiguities, stages, strict=True):
        exact = rm.solve(mdp, ambiguity, tol=1e-10)
        assert stage.converged
        assert np.all(stage.lower <= exact.upper)
        assert np.all(exact.lower <= stage.upper)
        own = rm.evaluate(mdp, stage.policy, ambiguity, tol=1e-10)
        assert np.all(stage.lower <= own.upper)
    assert eager
    assert min(eager) < 0.9


def test_without_more_room_everything_is_looked_at(eager: list[float]) -> None:
    mdp = rm.problems.garnet(60, 6, 5, 0.9, seed=0)
    rising = [(w, rm.Penalized(rm.KL(), w)) for w in (0.1, 1.0, 10.0)]
    for (_, ambiguity), stage in zip(rising, solve_along(mdp, rising, tol=1e-7), strict=True):
        exact = rm.solve(mdp, ambiguity, tol=1e-10)
        assert np.all((stage.lower <= exact.upper) & (exact.lower <= stage.upper))
    assert eager == []


def test_restricted_worlds_keep_rows_and_refuse_states_without_actions() -> None:
    mdp = rm.problems.inventory(4)
    pairs = np.flatnonzero(mdp.actions <= 1)
    few = mdp.restricted(pairs)
    for new, old in enumerate(pairs):
        rows = [slice(w.indptr[i], w.indptr[i + 1]) for w, i in ((few, new), (mdp, old))]
        for name in ("indices", "probabilities", "rewards"):
            assert np.array_equal(getattr(few, name)[rows[0]], getattr(mdp, name)[rows[1]])
    assert few.n_states == mdp.n_states
    assert few.n_actions == mdp.n_actions
    with pytest.raises(ValueError, match="every state must keep at least one of its actions"):
        mdp.restricted(pairs[1:][mdp.states[pairs[1:]] > 0])


def test_a_policy_alone_in_its_world_has_its_value() -> None:
    mdp = rm.problems.machine_replacement()
    policy = rm.solve(mdp, rm.Constrained(rm.KL(), 0.3)).policy
    pairs = np.array([mdp.pair(s, int(a)) for s, a in enumerate(policy)])
    alone, whole = rm.solve(mdp.restricted(pairs), rm.Nominal()), rm.evaluate(mdp, policy, rm.Nominal())
    assert np.abs(alone.value - whole.value).max() <= alone.error_bound + whole.error_bound
