"""A sample of the damaged files of verify_files.py: a clear sentence or a valid model."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyarrow")

from oracles.damaged_files import cases, damaged, flaw_of, worlds
from verify_files import judge


def test_what_is_not_damaged_is_read() -> None:
    for number in range(len(cases())):
        assert damaged(number)[0].kind == cases()[number].kind
    assert len({case.kind for case in cases()}) == 10
    assert not any(map(flaw_of, worlds()))


@pytest.mark.parametrize("part", range(4))
def test_damaged_files(part: int) -> None:
    verdicts = [judge(index, seed=3) for index in range(150 * part, 150 * (part + 1))]
    assert [verdict.wrong for verdict in verdicts if verdict.wrong] == []
    counts = Counter(verdict.outcome.partition(": ")[2] for verdict in verdicts)
    assert counts["refused"] > 75
    assert counts["read"] > 2
