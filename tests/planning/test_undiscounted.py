"""A model may have discount 1; what needs a discount says so."""

import numpy as np
import pytest

import robustmdp as rm

WALK = rm.MDP.from_rows([0, 0, 1], [0, 0, 0], [1, 2, 2], [0.5, 0.5, 1.0], [1.0, 1.0, 1.0], 1.0, n_states=2)


def test_a_model_may_have_it() -> None:
    assert WALK.discount == 1.0
    assert WALK.value_range == (0.0, np.inf)
    assert rm.RobustBellman(WALK, rm.Nominal()).apply([0.0, 1.0]).tolist() == [1.5, 1.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: rm.solve(WALK, rm.Nominal()),
        lambda: rm.evaluate(WALK, [0, 0], rm.Nominal()),
        lambda: rm.robustness_curve(WALK, rm.KL()),
    ],
)
def test_discounted_problems_refuse_it(call) -> None:
    with pytest.raises(ValueError, match="must have a discount below 1: got 1; lower it, or give a criterion"):
        call()


def test_learners_refuse_it() -> None:
    with pytest.raises(ValueError, match=r"discount must lie in \[0, 1\): got 1"):
        rm.GenerativeQLearning(rm.Nominal()).run(WALK, 10)
