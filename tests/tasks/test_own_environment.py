"""A user's own Gymnasium environment, learned with a certificate and a picture, in at most 25 lines."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm

pytest.importorskip("gymnasium")

PROGRAM = Path(__file__).with_name("own_environment.py")


def shop() -> rm.MDP:
    """The environment's model, which the learner does not see."""

    def step(stock, order, demand):
        have = np.minimum(5, stock + order)
        sold = np.minimum(have, demand)
        return have - sold, 3.0 * sold - order - 0.2 * have

    return rm.MDP.from_noise(step, 6, 3, np.full(4, 0.25), 0.9).without_noise()


def test_it_takes_at_most_25_lines() -> None:
    assert sum(bool(line.strip()) for line in PROGRAM.read_text().splitlines()) <= 25


def test_the_certificate_holds_and_the_picture_shows_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(PROGRAM))
    learned, exact = names["learned"], rm.solve(shop(), names["doubt"])
    assert (learned.lower <= exact.value).all()
    assert (exact.value <= learned.upper).all()
    low, high = shop().value_range
    assert (learned.upper - learned.lower < 0.05 * (high - low)).all()
    worst = rm.evaluate(shop(), learned.policy, names["doubt"]).value
    assert (worst > exact.value - 0.1).all()
    assert "with 95 % confidence" in capsys.readouterr().out
    assert (tmp_path / "shop.png").read_bytes().startswith(b"\x89PNG")
