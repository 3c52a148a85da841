"""The first sentences of a page: the verdict with its numbers, and what speaks against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.app.study.headline import headline, objections
from robustmdp.app.study.names import short
from robustmdp.app.study.study import Study
from robustmdp.table import Table


@pytest.fixture(scope="module")
def study() -> Study:
    """Held-out lakes on either side of the model's slip."""
    worlds = rm.worlds.environments("FrozenLake-v1", 0.95, success_rate=np.linspace(0.3, 0.95, 41))
    model = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95, success_rate=0.7)
    return rm.analyse(model, held_out=worlds, initial=0).study


def comparison(**robust: float) -> Table:
    """Of a nominal and a robust policy over 20 worlds."""
    numbers = {"mean": 5.0, "worst_tenth": 2.0, "gain": 0.5, "gain_low": -0.25, "gain_high": 1.25}
    numbers |= {"tail_gain": 2.0, "tail_gain_low": 1.5, "tail_gain_high": 2.5, **robust}
    columns: dict[str, Any] = {name: [0.0, number] for name, number in numbers.items()}
    return Table.of(policy=["nominal", "robust"], setting=["", "radius 0.1"], worlds=20, **columns)


def advised(study: Study, verdict: str, **changes: Any) -> Study:
    doubt = rm.Constrained(rm.KL(), 0.1) if verdict == "pays" else rm.Nominal()
    changes = {"comparison": comparison(), "worlds_needed": None, "baseline": None, **changes}
    return replace(study, suggestion=replace(study.suggestion, verdict=verdict, ambiguity=doubt, **changes))


def with_tails(study: Study, nominal: float, robust: float) -> Study:
    """As if the policies had these worst tenths in a family of 50 worlds."""
    of = {"nominal": nominal, "robust": robust}
    columns = dict(study.stress.columns)
    columns["worlds"] = np.full(len(study.stress), 50)
    columns["worst_tenth"] = np.array([of[name] for name in columns["policy"].tolist()])
    return replace(study, stress=replace(study.stress, columns=columns))


def test_the_decision_and_its_worth_come_first(study: Study) -> None:
    text = headline(with_tails(advised(study, "pays"), 1.0, 2.0), "EUR")
    assert text.startswith("Use the robust policy. Over 20 worlds that had no part in the choice")
    assert "2.000 EUR more (95 % interval 1.500 to 2.500) than the nominal one in the worst tenth" in text
    assert "0.5000 EUR more (95 % interval -0.2500 to 1.250) on average" in text
    price = float(study.start @ (study.nominal.value - study.under_model))
    assert f"If the model is right, it costs {short(price)} EUR" in text
    assert "speaks against" not in text
    for word in ("λ", "radius", "divergence", "Theorem"):
        assert word not in text


def test_a_loss_is_said_to_be_less(study: Study) -> None:
    poorer = comparison(gain=-0.5, gain_low=-0.75, gain_high=-0.25)
    assert "0.5000 less (95 % interval -0.7500 to -0.2500) on average" in headline(
        advised(study, "pays", comparison=poorer)
    )


def test_what_the_stress_test_says_against_the_advice_is_in_the_headline(study: Study) -> None:
    contradicted = with_tails(advised(study, "pays"), 2.0, 1.0)
    text = headline(contradicted)
    assert objections(contradicted)
    for sentence in objections(contradicted):
        assert sentence in text
    assert "in the worst tenth of 50 worlds" in text
    assert "it earns 1.000 against 2.000" in text


def test_values_that_differ_by_rounding_are_no_objection(study: Study) -> None:
    assert objections(with_tails(study, 1.0, 1.0 - 1e-7)) == []


def test_a_simpler_plan_that_does_as_well_is_in_the_headline(study: Study) -> None:
    text = headline(advised(study, "pays", baseline="shorter horizon"))
    assert "But a simpler plan does as well: shorter horizon." in text


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("does not pay", "Keep the nominal policy: robustness does not pay here."),
        ("undecided", "Undecided; keep the nominal policy for now."),
        ("too few worlds", "Too few worlds to decide; keep the nominal policy for now."),
    ],
)
def test_without_a_verdict_for_it_nothing_robust_is_advised(study: Study, verdict: str, words: str) -> None:
    needed = None if verdict == "does not pay" else 480
    text = headline(advised(study, verdict, worlds_needed=needed))
    assert text.startswith(words)
    assert ("A verdict would need about 480 worlds." in text) == (needed is not None)
    assert "Use the robust policy" not in text


def test_the_headline_is_that_of_the_advice(study: Study) -> None:
    """As it comes from the worlds, not made up."""
    pays = study.suggestion.verdict == "pays"
    assert headline(study).startswith("Use the robust policy.") == pays == study.recommended
