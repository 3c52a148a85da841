"""Every script of examples/ runs, writes its picture, and says what its numbers say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def script(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_picture(folder, name):
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def worst_tenth(tried, family):
    rows = tried.where(family=family)
    return dict(zip(rows["policy"], rows["worst_tenth"], strict=True))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_asks_one_question_and_is_listed(name):
    question = script(name).__doc__
    assert question.count("\n") == 0
    assert question.endswith("?")
    assert f"[{name}.py]({name}.py)" in (EXAMPLES / "README.md").read_text()


def test_frozen_lake(tmp_path, capsys):
    module = script("frozen_lake")
    planned = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "frozen_lake")
    assert len(re.findall(rf"^([{module.ARROWS}HG] ?){{8}} +([{module.ARROWS}HG] ?){{8}}$", said, re.M)) == 8
    usual = planned[0]
    nominal, robust = usual.tried["worst_tenth"]
    assert usual.slip == pytest.approx(2 / 3)
    assert robust > 1.2 * nominal
    assert usual.advice.pays
    assert module.wins(usual) > 0.8 * module.FRESH
    assert "Planned for slip 0.67, robust is better" in said
    for lake in planned:
        nominal, robust = lake.tried["worst_tenth"]
        verdict = "better" if robust > 1.01 * nominal else "worse" if robust < 0.99 * nominal else "no better"
        assert f"Planned for slip {lake.slip:.2f}, robust is {verdict} " in said


def test_inventory(tmp_path, capsys):
    module = script("inventory")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "inventory")
    assert len(found.others) == module.HISTORIES - 1
    best = [rm.solve(rm.problems.inventory(mean_demand=mean), rm.Nominal()).value[0] for mean in module.MEANS]
    gains = []
    for season in (found.season, *found.others):
        for values in season.earned.values():
            assert (values <= np.array(best) + 1e-3).all()
        gains.append(season.earned["robust"] - season.earned["nominal"])
    falls, rises = (np.mean(gains, axis=0)[where] for where in (module.MEANS < 5.0, module.MEANS > 5.0))
    assert (falls > 0).all()
    assert (rises < 0).all()
    assert f"{np.array(gains)[:, module.MEANS > 5.0].mean():.2f}" in said


def test_inventory_demand(tmp_path, capsys):
    module = script("inventory_demand")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "inventory_demand")
    assert found.model.noise.probabilities.sum() == pytest.approx(1.0)
    assert (found.robust.value <= found.nominal.value).all()
    worst = found.robust.worst_noise(0, int(found.robust.policy[0].argmax()))
    assert worst["worst_case"] @ worst["noise"] < worst["nominal"] @ worst["noise"]  # nature makes demand fall
    assert 0 < found.price < 0.05 * found.nominal.value[0]
    assert f"robust earns {found.price:.1f} less" in said
    for side, sign in (("lower", 1), ("higher", -1)):
        gain = found.tried[side]
        assert len(gain) == module.WORLDS
        assert sign * gain.mean() > 3.0 * gain.std(ddof=1) / np.sqrt(module.WORLDS)
        assert f"Where demand is {side}, robust gains {gain.mean():+.2f} " in said
    assert (found.tried["higher"] < 0).all()


def test_service_desk(tmp_path, capsys):
    module = script("service_desk")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "service_desk")
    assert 0 < found.right["robust"] - found.right["nominal"] < 0.05 * found.right["nominal"]
    assert found.worst["robust"] < found.worst["nominal"]
    assert (found.speed["robust"] >= found.speed["nominal"]).all()
    saved = found.rushed["nominal"] - found.rushed["robust"]
    assert (saved[module.RUSHES <= 1.2] < 0).all()  # dearer as it was, and cheaper in a rush alone
    assert (saved[module.RUSHES >= 1.3] > 0).all()
    assert f"costs {found.right['robust']:.2f} per period if the log is right" in said


def test_the_shop_sells_what_it_has():
    module = script("inventory_demand")
    assert module.step(3, 4, 5) == (2, 5 * 5 - 3 * 4 - 4 - 0.1 * 2)
    assert module.step(58, 19, 70) == (0, 5 * 59 - 3 * 19 - 4 - 11)
    assert module.step(2, 0, 0) == (2, -0.2)


def test_the_store_with_the_true_demand_is_the_true_store():
    module = script("inventory")
    mean, size = module.TRUE_MEAN, module.CAPACITY + 1
    poisson = np.exp(-mean) * np.cumprod([1.0, *(mean / k for k in range(1, size))])
    poisson[-1] += 1.0 - poisson.sum()
    np.testing.assert_allclose(module.store(poisson).probabilities, module.STORE.probabilities, atol=1e-12)


def test_machine(tmp_path, capsys):
    module = script("machine")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "machine")
    assert found.plan.estimate.counts.count.sum() == module.RECORDS
    best = [-rm.solve(module.harder(times), rm.Nominal()).value[0] for times in module.HARDER]
    for rows in found.costs.values():
        assert rows.shape == (module.LOGS, len(module.HARDER))
        assert (rows >= np.array(best) - 1e-4).all()
    saved = dict(zip(module.HARDER, (found.costs["nominal"] - found.costs["robust"]).mean(axis=0), strict=True))
    assert saved[1.0] < 0 < saved[4.0]
    assert f"robust costs {-saved[1.0]:.2f} more" in said
    own = worst_tenth(found.tried, "true machine, odds x 4")
    assert -own["robust"] == pytest.approx(found.costs["robust"][module.SHOWN, -1], abs=1e-3)


def test_harder_use_multiplies_the_odds():
    module = script("machine")
    before, after = (module._failure_rates(world)[:-2] for world in (module.MACHINE, module.harder(3.0)))
    np.testing.assert_allclose(after / (1 - after), 3.0 * before / (1 - before))


def test_craam_csv(tmp_path, capsys):
    module = script("craam_csv")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    fishery = rm.read(module.MODEL, discount=module.DISCOUNT)
    np.testing.assert_array_equal(rm.read_policy(found.file, fishery), found.solution.policy)
    assert found.file == tmp_path / "policy.csv"
    each = [worst_tenth(found.tried, family) for family in dict.fromkeys(found.tried["family"])]
    gains = [values["robust"] - values["nominal"] for values in each]
    assert gains[0] < 0 < gains[2]  # it costs something if the file is right, and is better in the worst case
    assert said.count("<- robust is better") == sum(gain > 0 for gain in gains)


def test_from_a_log(tmp_path, capsys):
    module = script("from_a_log")
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "from_a_log")
    assert len((tmp_path / "lake.csv").read_text().splitlines()) == module.STEPS + 1
    for kind in ("nominal", "robust"):
        one, other = (found.values[f"{kind}, {way}"] for way in ("learned", "planned"))
        np.testing.assert_allclose(one, other, atol=0.01)
    nominal, robust = found.values["nominal, learned"], found.values["robust, learned"]
    assert robust.min() > 1.5 * nominal.min()
    assert f"({robust.min():.3f} against {nominal.min():.3f})" in said
    assert (robust < nominal)[module.SLIPS > module.TRUE_SLIP].all()  # it does not win everywhere, and says so
    assert f"wins at {(robust > nominal).sum()} of {len(module.SLIPS)} slips" in said


@pytest.fixture(scope="module")
def icu():
    module = script("icu_sepsis")
    if module.assets() is None:
        pytest.skip("icu-sepsis is not installed")
    return module, module.load(module.assets())


def test_icu_sepsis(icu, tmp_path, capsys):
    module, sepsis = icu
    found = module.main(tmp_path)
    said = capsys.readouterr().out
    check_picture(tmp_path, "icu_sepsis")
    assert said.count("agrees") == 2
    for name, value in found.values.items():
        assert value.high - value.low < 1e-4
        assert value.rounds_to(module.PUBLISHED[name])
    best = rm.solve(sepsis.mdp, rm.Nominal(), tol=module.TOL).policy
    for name, policy in (("best policy", np.eye(25)[best]), ("clinicians", sepsis.clinicians)):
        value = found.values[name]
        assert value.low - 1e-9 <= survival(sepsis, policy) <= value.high
    levels = found.levels
    assert (levels["status"] == "converged").all()
    assert (np.diff(levels["nominal"]) < 1e-6).all()
    assert (levels["worst"] >= levels["nominal_worst"] - 1e-5).all()
    each = [worst_tenth(found.tried, family) for family in found.tried.values("family")]
    assert said.count("<- robust is better") == sum(values["robust"] > values["nominal"] for values in each)
    assert all(min(values["robust"], values["nominal"]) > values["clinicians"] for values in each)


def survival(sepsis, policy):
    """By plain linear algebra at discount 1."""
    mdp = sepsis.mdp
    chance = np.repeat(policy[mdp.states, mdp.actions], np.diff(mdp.indptr)) * mdp.probabilities
    state = np.repeat(mdp.states, np.diff(mdp.indptr))
    moves = np.zeros((mdp.n_states, mdp.n_states + 1))
    np.add.at(moves, (state, mdp.indices), chance)
    survives = np.bincount(state, chance * mdp.rewards)
    return float(sepsis.initial @ np.linalg.solve(np.eye(mdp.n_states) - moves[:, :-1], survives))


def test_icu_counts_give_the_probabilities_back(icu):
    _, sepsis = icu
    counts, mdp = sepsis.counts, sepsis.mdp
    assert (mdp.n_states, mdp.n_pairs) == (713, 2238)
    np.testing.assert_allclose(counts.probabilities("none"), mdp.probabilities, rtol=1e-9)
    assert counts.count.min() >= 1
    np.testing.assert_array_equal(counts.count, np.round(counts.count))
    np.testing.assert_array_equal(counts.model(mdp.discount, "none").indices, mdp.indices)


def test_icu_shifts_keep_rows_whole(icu):
    module, sepsis = icu
    mdp = sepsis.mdp
    ends = mdp.indices == mdp.n_states
    for world in (module.sicker(sepsis, 0.3), module.deadlier(sepsis, 4)):
        np.testing.assert_allclose(np.add.reduceat(world.probabilities, world.indptr[:-1]), 1.0)
    np.testing.assert_allclose(module.sicker(sepsis, 0.3).probabilities[ends], mdp.probabilities[ends])


def test_icu_without_its_data_says_where_to_get_it(monkeypatch, tmp_path, capsys):
    module = script("icu_sepsis")

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.metadata, "files", missing)
    assert module.main(tmp_path) is None
    assert capsys.readouterr().out.endswith("pip install --no-deps icu-sepsis\n")
    assert list(tmp_path.iterdir()) == []


def test_pumps(tmp_path, capsys, monkeypatch):
    module = script("pumps")
    monkeypatch.setattr(module, "LOGS", 60)  # of 400
    found = module.main(tmp_path)
    check_picture(tmp_path, "pumps")
    assert "Does doubting the records save money?" in capsys.readouterr().out
    here = list(module.FAILURES).index(0.012)
    tenth = {name: np.sort(rows[:, here])[:6].mean() for name, rows in found.worth.items()}
    assert tenth["robust"] > tenth["shorter horizon"] > tenth["nominal"]
    best = rm.solve(module.TRUTH, rm.Nominal()).value[0]
    assert all((rows[:, here] <= best + 1e-6).all() for rows in found.worth.values())


def test_the_pumps_records_are_those_of_the_script(tmp_path):
    written = script("pumps").write_records(tmp_path / "pumps.csv")
    assert written.read_bytes() == (EXAMPLES / "pumps.csv").read_bytes()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # Ray's own
def test_two_nodes(capsys):
    pytest.importorskip("ray")
    module = script("two_nodes")
    found = module.main()
    said = capsys.readouterr().out
    assert found.together.converged
    apart = abs(found.alone.value - found.together.value).max()
    assert apart <= found.alone.error_bound + found.together.error_bound
    assert "Their values agree" in said
    sent = found.steps[-1].traffic.bytes_sent
    assert sent <= 8 * 2 * (module.ROOM + 1)  # each reads the states of the other one that are next to its own
    assert f"{sent:,} bytes a sweep" in said


def test_a_script_runs_by_itself_and_says_the_same_each_time(tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / "craam_csv.py")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    given = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, env=environment, check=True)
    usual = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=tmp_path)
    assert given.stdout == usual.stdout
    assert (tmp_path / "demo" / "policy.csv").read_bytes() == (tmp_path / "policy.csv").read_bytes()


def test_deep_agent(tmp_path, capsys):
    pytest.importorskip("stable_baselines3")
    module = script("deep_agent")
    found = module.main(tmp_path, steps=1024)
    check_picture(tmp_path, "deep_agent")
    assert "In the worst case the agents are worth" in capsys.readouterr().out
    assert found.right["nominal"] >= max(found.right.values()) - 1e-6
    assert found.worst["robust"] >= max(found.worst.values()) - 1e-6
    assert all(found.worst[name] <= found.right[name] for name in found.policies)


def test_tensorboard_log(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    module = script("tensorboard_log")
    learned = module.main(tmp_path)
    check_picture(tmp_path, "tensorboard_log")
    assert capsys.readouterr().out.splitlines()[-1].startswith("Learning makes progress")
    events = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"tensors": 0}).Reload()
    logged = [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors("error of Q")]
    steps, errors = zip(*logged, strict=True)
    assert steps == tuple(learned.trace["steps"])
    np.testing.assert_allclose(errors, learned.trace["error"], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "package", "remedy"),
    [
        ("deep_agent", "stable_baselines3", "pip install stable-baselines3"),
        ("tensorboard_log", "tensorboard", "pip install tensorboard"),
    ],
)
def test_what_is_missing_is_said(name, package, remedy, tmp_path, capsys, monkeypatch):
    module = script(name)
    monkeypatch.setattr(module, "find_spec", lambda wanted: None if wanted == package else 1)
    assert module.main(tmp_path) is None
    assert capsys.readouterr().out.endswith(f"{remedy}\n")
    assert list(tmp_path.iterdir()) == []
