"""Sums without a discount: bounds that hold the exact answers of small worlds, closed forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import robustmdp as rm
import verify_criteria

SEED = 1  # other worlds than those of `make verify`


@pytest.mark.parametrize("stream", ["total", "reach"])
def test_bounds_hold_exact_answers(stream: str) -> None:
    """Every policy against every vertex, in rationals; stopped runs and given policies included."""
    count = 72  # each family with each sign and role at least once
    verdicts = [verdict for index in range(count) for verdict in verify_criteria.JUDGES[stream](SEED, index)]
    assert [failure for verdict in verdicts for failure in verdict.failures] == []
    assert sum(verdict.outcome == "converged" for verdict in verdicts) >= count // 4


# State 0 goes on with 3/4 and ends with 1/4, paying 1 a step; state 1 may wait for nothing, or pay 2 to go to 0.
WORLD = rm.MDP.from_rows(
    [0, 0, 1, 1], [0, 0, 0, 1], [0, 2, 1, 0], [0.75, 0.25, 1.0, 1.0], [1.0, 1.0, 0.0, 2.0], 1.0, n_states=2
)


@pytest.mark.parametrize("solver", [None, rm.ValueIteration(), rm.PolicyIteration()], ids=str)
def test_every_solver_finds_closed_forms(solver: rm.ValueIteration | rm.PolicyIteration | None) -> None:
    """L1(0.2) moves 0.1 from staying to the end: 1/0.35; nature that helps moves it the other way: 1/0.15."""
    for doubt, stay in ((rm.Nominal(), 0.75), (rm.L1(0.2), 0.65), (rm.Optimistic(rm.L1(0.2)), 0.85)):
        found = rm.solve(WORLD, doubt, criterion=rm.TotalReward(), solver=solver)
        best = 1.0 / (1.0 - stay)
        assert found.converged
        assert found.policy.tolist() == [0, 1]
        for s, exact in enumerate((best, 2.0 + best)):
            assert found.lower[s] <= exact * (1 + 1e-15)
            assert found.upper[s] >= exact * (1 - 1e-15)
            assert found.value[s] == pytest.approx(exact, abs=2e-8 * exact)


def test_costs_are_not_paid_by_those_who_may_wait() -> None:
    negative = WORLD.with_rewards(-WORLD.rewards)
    found = rm.solve(negative, rm.L1(0.2), criterion=rm.TotalReward())
    assert found.policy[1] == 0
    assert found.value == pytest.approx([-1.0 / 0.15, 0.0], abs=1e-6)


def test_a_policy_is_judged_by_its_own_rewards() -> None:
    """The model has rewards of both signs; the policy collects none below 0, so that idling for ever is worth 0."""
    mixed = WORLD.with_rewards([1.0, 0.0, -2.0])
    waiting = rm.evaluate(mixed, [0, 0], rm.L1(0.2), criterion=rm.TotalReward())
    assert waiting.value == pytest.approx([1.0 / 0.35, 0.0], abs=1e-7)


def test_worst_cases_attain_the_value() -> None:
    """The policy's chain in the worst case, by a dense solve."""
    found = rm.solve(WORLD, rm.L1(0.2), criterion=rm.TotalReward())
    again = rm.evaluate(found.worst_case, found.policy, rm.Nominal(), criterion=rm.TotalReward())
    assert np.abs(again.value - found.value).max() <= again.error_bound + found.error_bound


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("tol", [1e-8, 1e-12, 1e-14])
def test_what_nature_pays_counts_in_full(sign: float, tol: float) -> None:
    """v = sign + w log(E exp(v/w)): a closed form for y = exp(v/w) where one step leads back or to the end."""
    step = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.5, 0.5], [sign, sign], 1.0, n_states=1)
    price = rm.Penalized(rm.KL(), 2.0)
    for ambiguity, w in ((price, -2.0), (rm.Optimistic(price), 2.0)):
        half = 0.5 * np.exp(sign / w)
        truth = w * np.log(half / (1.0 - half))
        found = rm.solve(step, ambiguity, criterion=rm.TotalReward(), tol=tol)
        assert found.lower[0] <= truth * (1 + 1e-15 * np.sign(truth))
        assert found.upper[0] >= truth * (1 - 1e-15 * np.sign(truth))
        assert found.error_bound <= max(tol, 1e-12) * max(1.0, abs(truth))


def test_endless_sums_are_refused_by_name() -> None:
    loop = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1.0, 1.0], [1.0, 0.0], 0.9)
    with pytest.raises(ValueError, match=r"^the total reward must be finite everywhere: from state \d .* grows"):
        rm.solve(loop, rm.Nominal(), criterion=rm.TotalReward())
    with pytest.raises(ValueError, match="falls without limit"):
        rm.solve(loop.with_rewards(-loop.rewards), rm.Nominal(), criterion=rm.TotalReward())


def test_the_direction_of_an_endless_sum_is_that_of_its_mean() -> None:
    """The states of the loop pay 5 and -1 each time, but the second is passed nine times as often."""
    loop = rm.MDP.from_rows([0, 1, 1], [0, 0, 0], [1, 0, 1], [1.0, 1 / 9, 8 / 9], [5.0, -1.0, -1.0], 1.0)
    with pytest.raises(ValueError, match="falls without limit"):
        rm.solve(loop, rm.Nominal(), criterion=rm.TotalReward())


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_stopped_runs_keep_what_is_known(stop: int) -> None:
    found = rm.solve(WORLD, rm.L1(0.2), criterion=rm.TotalReward(), callback=lambda step: step.step >= stop)
    assert (found.lower <= found.upper).all()
    assert found.lower[0] <= 1.0 / 0.35 <= found.upper[0]
