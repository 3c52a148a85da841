"""A sample of the damaged files of verify_files.py: a clear sentence or a valid model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from oracles.damaged_files import cases, damaged, flaw_of, worlds
from robustmdp.io.arrow import column_chunks
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


def test_a_row_is_read_before_anything_is_asked_of_a_part() -> None:
    """pyarrow 26 ends the process where the size statistics of a part are damaged; reading it raises an error."""

    def end_process(*arguments: Any) -> NoReturn:
        pytest.fail("the process would have ended")

    def read(*arguments: Any, **settings: Any) -> Any:
        raise pa.ArrowInvalid("Definition level histogram size mismatch")
        yield

    metadata = SimpleNamespace(num_columns=1, row_group=lambda number: SimpleNamespace(column=end_process))
    schema = SimpleNamespace(column=lambda place: SimpleNamespace(path="state"))
    file = SimpleNamespace(metadata=metadata, schema=schema, iter_batches=read)
    with pytest.raises(ValueError, match=r"^odd.parquet must be a whole Parquet file: Definition level"):
        column_chunks(file, Path("odd.parquet"), 0, {"state"})
