"""Worlds that are not the model, and how policies do there, against evaluations by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from oracles.random_rows import NAMED
from robustmdp.operators import RobustBellman
from robustmdp.tuning.trials import worst_tenth

MACHINE = rm.problems.machine_replacement()
LAKE = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95)
KEEP, REPAIR = np.zeros(10, int), np.array([0] * 5 + [1] * 4 + [2])
POLICIES = {"keep": KEEP, "repair": REPAIR}
each_divergence = pytest.mark.parametrize("divergence", NAMED, ids=repr)


@each_divergence
@pytest.mark.parametrize("radius", [0.02, 0.3])
@pytest.mark.parametrize("mdp", [MACHINE, LAKE, rm.problems.inventory(5)], ids=["machine", "lake", "inventory"])
def test_the_adversary_is_the_worst_case(mdp: rm.MDP, radius: float, divergence: Any) -> None:
    """In the world that nature answers with, the value is the worst-case value, for each policy its own."""
    doubt = rm.Constrained(divergence, radius)
    policies = {"nominal": rm.Nominal(), "robust": doubt}
    table = rm.stress(mdp, policies, rm.worlds.Adversary(doubt), initial=0)
    assert table["worlds"].tolist() == [1, 1]
    for name, ambiguity in policies.items():
        policy = rm.solve(mdp, ambiguity, tol=1e-6).policy
        worst = rm.evaluate(mdp, policy, doubt, tol=1e-6)
        # The world is nature's answer to a value within one bound, evaluated to another.
        assert abs(table.where(policy=name)["mean"][0] - worst.value[0]) <= 4e-6 * max(1.0, np.abs(worst.value).max())
    nominal, robust = table["mean"]
    assert nominal <= robust + 4e-6 * max(1.0, abs(robust))
    assert table["wins"][1] == 1


@pytest.mark.parametrize(
    ("ambiguity", "name"),
    [
        (rm.Constrained(rm.KL(), 0.1), "worst case, Kullback-Leibler radius 0.1"),
        (rm.Penalized(rm.Burg(), 2.0), "worst case, Burg weight 2"),
        (rm.Constrained(rm.Burg(), np.ones((2, 2))), "worst case, Burg radius per pair"),
        (rm.Nominal(), "the model"),
    ],
)
def test_adversaries_have_short_names(ambiguity: Any, name: str) -> None:
    assert rm.worlds.Adversary(ambiguity).name == name


def test_values_are_evaluations_by_hand() -> None:
    others = [rm.problems.machine_replacement(repair_success=p) for p in (0.3, 0.6, 0.9)]
    start = np.random.default_rng(0).dirichlet(np.ones(10))
    table = rm.stress(MACHINE, POLICIES, others, initial=start, tol=1e-8)
    values = {
        name: np.array([start @ rm.evaluate(world, policy, rm.Nominal(), tol=1e-10).value for world in others])
        for name, policy in POLICIES.items()
    }
    better = np.maximum(*values.values())
    for name, expected in values.items():
        found = table.outcomes.where(policy=name)
        np.testing.assert_allclose(found["value"], expected, rtol=2e-8)
        assert found["world"].tolist() == ["held out 1", "held out 2", "held out 3"]
        (row,) = table.where(policy=name).to_frame().to_dict("records")
        assert row["family"] == "held out"
        assert row["worlds"] == 3
        assert row["mean"] == pytest.approx(expected.mean(), rel=2e-8)
        assert row["worst"] == row["worst_tenth"] == pytest.approx(expected.min(), rel=2e-8)
        for column, quantile in (("q10", 0.1), ("median", 0.5), ("q90", 0.9)):
            assert row[column] == pytest.approx(np.quantile(expected, quantile), rel=2e-8)
        assert row["wins"] == np.sum(expected >= better - 1e-6)
        assert found["best"].tolist() == (expected >= better - 1e-6).tolist()


def test_ties_are_won_by_all() -> None:
    twins = {"one": KEEP, "other": KEEP.copy(), "probabilities": np.eye(3)[KEEP], "worse": np.full(10, 2)}
    table = rm.stress(MACHINE, twins, [MACHINE], initial=0)
    assert table["wins"].tolist() == [1, 1, 1, 0]


def test_worlds_with_one_label_are_not_one_world() -> None:
    """Winners were once found per label: with two worlds of one label only the better one had any."""
    pair = rm.worlds.Models([MACHINE, rm.problems.machine_replacement(repair_success=0.1)], "pair", ["same", "same"])
    table = rm.stress(MACHINE, POLICIES, pair, initial=0)
    assert table["wins"].sum() >= 2
    assert np.add.reduceat(table.outcomes["best"].astype(int), [0, 2]).min() == 1


@pytest.mark.parametrize(("count", "taken"), [(1, 1), (9, 1), (10, 1), (20, 2), (100, 10)])
def test_the_worst_tenth(count: int, taken: int) -> None:
    values = np.random.default_rng(0).permutation(np.arange(float(count)))
    assert worst_tenth(values) == (taken - 1) / 2


def test_policies_of_every_kind() -> None:
    doubt = rm.Constrained(rm.KL(), 0.2)
    robust = rm.solve(MACHINE, doubt, tol=1e-6)
    table = rm.stress(
        MACHINE,
        {"ambiguity": doubt, "solution": robust, "actions": robust.policy, "list": robust.policy.tolist(),
         "probabilities": np.eye(3)[robust.policy]},
        MACHINE,
    )  # fmt: skip
    assert np.ptp(table["mean"]) <= 2e-6 * abs(table["mean"][0])
    assert table["wins"].tolist() == [1] * 5


def test_families_of_every_kind() -> None:
    seen: list[tuple[int, int]] = []
    counts = rm.Counts.of(rm.Trajectory([0, 0, 1], [0, 0, 0], [0.0, 0.0, 1.0], [0, 1, 0]))
    model = counts.model(0.5)
    table = rm.stress(
        model,
        {"only": [0, 0]},
        [
            rm.worlds.RandomKernels(rm.KL(), 0.1, count=2),
            model,
            rm.worlds.Adversary(rm.Constrained(rm.KL(), 0.1)),
            rm.worlds.Plausible(counts, count=3),
            model,
            rm.worlds.Models([model], "mine", labels=["alone"]),
        ],
        progress=lambda *step: seen.append(step),
    )
    assert table["family"].tolist() == [
        "held out",
        "random, up to 0.1 on average (Kullback-Leibler)",
        "worst case, Kullback-Leibler radius 0.1",
        "plausible given the data",
        "mine",
    ]
    assert table["worlds"].tolist() == [2, 2, 1, 3, 1]
    assert seen == [(done, 9) for done in range(1, 10)]
    assert table.outcomes["world"].tolist()[-4:] == ["draw 1", "draw 2", "draw 3", "alone"]
    named = rm.stress(model, {"only": [0, 0]}, {"a": model, "b": [model, model], "c": (model,)})
    assert dict(zip(named["family"], named["worlds"], strict=True)) == {"a": 1, "b": 2, "c": 1}


def test_plausible_worlds_are_draws_of_the_counts() -> None:
    counts = rm.Counts.of(rm.Trajectory([0, 0, 1], [0, 0, 0], [0.0, 0.0, 1.0], [0, 1, 0]))
    model = counts.model(0.5)
    family = rm.worlds.Plausible(counts, count=3, seed=4)
    found = [world.mdp for world in family.worlds(model, None)]
    assert found == [counts.draw(0.5, np.random.default_rng([4, number])) for number in range(3)]
    assert found[0] != found[1]


def test_lakes_with_other_ice() -> None:
    import gymnasium

    lakes = rm.worlds.environments("FrozenLake-v1", 0.95, success_rate=[0.4, 0.8], map_name="4x4")
    assert lakes.name == "FrozenLake-v1 with another success_rate"
    for rate, lake in zip((0.4, 0.8), lakes.models, strict=True):
        env = gymnasium.make("FrozenLake-v1", success_rate=rate)
        assert lake == rm.MDP.from_gymnasium(env, 0.95)
        world = naive_mdp.of_gymnasium(env.unwrapped.P, 0.95)
        policy = rm.solve(LAKE, rm.Nominal()).policy
        value = rm.evaluate(lake, policy, rm.Nominal()).value
        np.testing.assert_allclose(value, naive_mdp.fixed_point(world, rm.Nominal(), policy), atol=1e-7)
    both = rm.worlds.environments(
        "FrozenLake-v1", 0.9, success_rate=[0.5, 1.0], reward_schedule=((1, 0, 0), (1, -1, 0)), name="ice"
    )
    assert both.name == "ice"
    assert both.labels is not None
    assert both.labels[1] == "success_rate=0.5, reward_schedule=(1, -1, 0)"
    table = rm.stress(LAKE, {"nominal": rm.Nominal(), "robust": rm.Constrained(rm.KL(), 0.1)}, lakes, initial=0)
    assert table.outcomes["world"].tolist() == ["success_rate=0.4"] * 2 + ["success_rate=0.8"] * 2


def test_ctrl_c_stops_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve ends early and says so; what is built on many must not go on with half a value."""
    family = rm.worlds.Adversary(rm.Constrained(rm.KL(), 0.1))

    def interrupt(*given: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(RobustBellman, "apply_policy", interrupt)
    assert rm.evaluate(MACHINE, KEEP, rm.Nominal()).status.code == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        rm.stress(MACHINE, POLICIES, MACHINE)
    with pytest.raises(KeyboardInterrupt):
        next(family.worlds(MACHINE, KEEP))
    monkeypatch.setattr(RobustBellman, "sweep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rm.stress(MACHINE, {"nominal": rm.Nominal()}, MACHINE)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: rm.stress(MACHINE, POLICIES, []), ValueError, "must hold at least one world: got none$"),
        (lambda: rm.stress(MACHINE, POLICIES, {}), ValueError, "must hold at least one world: got none$"),
        (lambda: rm.stress(MACHINE, POLICIES, {"a": []}), ValueError, "^a must hold at least one world: got none$"),
        (lambda: rm.stress(MACHINE, POLICIES, {"a": 3}), TypeError, r"^perturbed_worlds\['a'\] must be .*: got int$"),
        (lambda: rm.stress(MACHINE, POLICIES, [3]), TypeError, "^perturbed_worlds must be MDPs or families .*: got 3$"),
        (lambda: rm.stress(MACHINE, {}, MACHINE), ValueError, "^policies must hold at least one policy: got none$"),
        (lambda: rm.stress(MACHINE, [KEEP], MACHINE), TypeError, "^policies must be a dict from names .*: got list$"),
        (lambda: rm.stress(MACHINE, {"a": [0]}, MACHINE), ValueError, r"of shape \(10,\) or \(10, 3\): got \(1,\)$"),
        (
            lambda: rm.stress(MACHINE, POLICIES, {"lakes": LAKE}),
            ValueError,
            "^a world must have the model's 10 states: lakes 1 of lakes has 16$",
        ),
        (
            lambda: rm.stress(MACHINE, POLICIES, [rm.worlds.RandomKernels(rm.KL(), 0.1, count=1)] * 2),
            ValueError,
            "^families of worlds must have different names: got",
        ),
        (lambda: rm.worlds.RandomKernels(rm.KL(), -0.1), ValueError, "^radius must be at least 0: got -0.1$"),
        (lambda: rm.worlds.RandomKernels(rm.KL(), 0.1, count=0), ValueError, "^count must be at least 1: got 0$"),
        (lambda: rm.worlds.Adversary(rm.KL()), TypeError, r"^ambiguity must be a set such as Nominal\(\), Penalized"),
        (lambda: rm.worlds.Models([]), ValueError, "^held out must hold at least one world: got none$"),
        (lambda: rm.worlds.Models([1]), TypeError, "^held out must hold MDPs: got int at number 0$"),
        (lambda: rm.worlds.Models([MACHINE], labels=[]), ValueError, r"^labels must be as many .* \(1\): got 0$"),
        (lambda: rm.worlds.Plausible(MACHINE), TypeError, "^counts must be Counts, such as .*: got MDP$"),
        (lambda: rm.worlds.environments("FrozenLake-v1", 0.9), ValueError, "must be a list of values: got {}$"),
        (lambda: rm.worlds.environments("Nothing-v0", 0.9, a=[1]), ValueError, "^Gymnasium must know the environment"),
    ],
)
def test_what_cannot_be(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_a_start_worth_little_beside_another_state() -> None:
    """Values were exact relative to the largest one: the start's 1 became 0.97 beside one of 100,000."""
    stay = np.eye(3)[:, None, :]
    mdp = rm.MDP.from_arrays(stay, [0.1, 0.0, -1e4], 0.9)
    table = rm.stress(mdp, {"only": np.zeros(3, int)}, [mdp], initial=0)
    assert table["mean"][0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("count", "tenth"), [(4, 1), (15, 2), (25, 3), (34, 3), (35, 4)])
def test_a_half_is_rounded_up(count: int, tenth: int) -> None:
    assert worst_tenth(np.arange(float(count))) == np.arange(tenth).mean()


def test_combinations_alternate_in_every_parameter() -> None:
    """All slippery lakes chose and all others judged: positions of one parity had one value."""
    lakes = rm.worlds.environments("FrozenLake-v1", 0.9, success_rate=[0.3, 0.6, 0.9], is_slippery=[True, False])
    assert lakes.labels is not None
    for half in (lakes.labels[::2], lakes.labels[1::2]):
        assert len({label.split(", ")[1] for label in half}) == 2
        assert len({label.split(", ")[0] for label in half}) == 3


def test_worlds_must_have_the_actions() -> None:
    fewer = rm.MDP.from_arrays(np.full((10, 1, 10), 0.1), np.zeros(10), 0.9)
    with pytest.raises(ValueError, match=r"^a world must have the model's 3 actions: .* has 1$"):
        rm.stress(MACHINE, {"keep": KEEP}, [fewer])
