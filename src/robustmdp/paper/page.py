"""The page of a reproduction: what was run, the claims, the figures and the settings."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from robustmdp import __version__
from robustmdp.app.page import render
from robustmdp.paper import experiment_named
from robustmdp.paper.claims import dependence
from robustmdp.paper.curves import labels
from robustmdp.paper.figures import Figure
from robustmdp.table import Table

TITLE = "Robust MDPs without model estimation, reproduced"
LEAD = (
    "Every figure and claim of the experiments in “Robust Markov Decision Processes without Model Estimation” "
    "(arXiv 2302.01248), run again. Each claim is a test that can fail; what fails is reported as it is."
)
_OURS = ("rates", "step-sizes", "limits", "exploration", "equivalence", "sample-efficiency", "memory")
_BADGES = {"holds": "yes", "does not hold": "no", "within noise": "open"}
_MOST_LISTED = 12  # values of a parameter


def body(records: Mapping[str, Table], claims: Table, figures: Mapping[str, Figure], pictures: Path) -> Any:
    """The sections as HTML; everything is computed from the records, and figures are PNG files in `pictures`."""
    embedded = {name: base64.b64encode((pictures / f"{name}.png").read_bytes()).decode("ascii") for name in figures}
    drawn = [(name, figure, f"data:image/png;base64,{embedded[name]}") for name, figure in figures.items()]
    return render(
        "report.html.j2",
        "robustmdp.paper",
        run=_run(records),
        changed=[name for name, table in records.items() if departures(name, table)],
        claims=_tabulate(claims) if len(claims) else None,
        groups=[
            ("The paper's figures", [each for each in drawn if each[0] not in _OURS]),
            ("Beyond the paper", [each for each in drawn if each[0] in _OURS]),
        ],
        settings=[(name, experiment_named(name).title, _settings(table)) for name, table in records.items()],
    )


def _run(records: Mapping[str, Table]) -> list[tuple[str, str]]:
    notes = [table.notes for table in records.values()]

    def given(name: str) -> list[Any]:
        """The values of a parameter in all experiments."""
        values = [note["parameters"][name] for note in notes if name in note["parameters"]]
        return sorted({each for value in values for each in (value if isinstance(value, list | tuple) else [value])})

    seconds, work = (sum(note.get(name, 0.0) for note in notes) for name in ("wall_seconds", "task_seconds"))
    pairs = [
        ("robustmdp", __version__),
        ("experiments", ", ".join(records)),
        ("p (stay)", ", ".join(labels(given("stay")))),
        ("q (restart)", f"0 in the first chain; {', '.join(labels(given('restart')))} in the one that returns"),
        ("seeds per setting", ", ".join(map(str, given("seeds")))),
        ("started", min(str(note.get("started", "")) for note in notes)),
        ("time for the records", f"{seconds:,.0f} s, {work:,.0f} s of one core"),
        ("Python, NumPy", ", ".join(str(notes[0].get(key, "?")) for key in ("python", "numpy"))),
        ("machine", str(notes[0].get("machine", "?"))),
    ]
    return [(label, value) for label, value in pairs if value]


def departures(name: str, table: Table) -> list[str]:
    """The parameters of an experiment that differ from its defaults, the world's apart."""
    usual = msgspec.json.decode(msgspec.json.encode(experiment_named(name).parameters()))
    return [key for key, value in table.notes["parameters"].items() if key != "stay" and usual.get(key) != value]


def _tabulate(claims: Table) -> dict[str, Any]:
    """The verdict of each claim in each world, how verdicts depend on the world, their numbers and tests."""
    stays = claims.values("stay")
    verdicts, tests = [], []
    for (number,), of in claims.groups("claim"):
        found = dict(zip(of["stay"].tolist(), of["verdict"].tolist(), strict=True))
        verdicts.append((number, str(of["statement"][0]), *(found.get(stay, "not run") for stay in stays)))
        tests.append((number, "; ".join(of.values("setting")), str(of["test"][0])))
    columns = ("claim", "stay", "verdict", "numbers", "explanation")
    return {
        "verdicts": {
            "header": ("claim", "statement", *(f"p = {stay:g}" for stay in stays)),
            "rows": verdicts,
            "caption": "Verdict by claim and world",
            "badges": _BADGES,
        },
        "sentences": dependence(claims) or ["No verdict depends on p."][: len(stays) - 1],
        "numbers": {
            "header": ("claim", "p", "verdict", "numbers", "explanation"),
            "rows": [tuple(row[name] for name in columns) for row in claims],
            "caption": "Every verdict with its numbers",
            "badges": _BADGES,
        },
        "tests": {"header": ("claim", "setting", "test"), "rows": tests, "caption": "How each claim was tested"},
    }


def _settings(table: Table) -> list[tuple[str, str]]:
    parameters = [(key.replace("_", " "), _text(value)) for key, value in table.notes["parameters"].items()]
    return [*parameters, ("rows", f"{len(table):,}"), ("seconds", f"{table.notes.get('wall_seconds', 0):,.1f}")]


def _text(value: Any) -> str:
    if not isinstance(value, list):
        return f"{value:,}" if isinstance(value, int) else str(value)
    shown = [_text(each) for each in value]
    if len(shown) <= _MOST_LISTED:
        return ", ".join(shown)
    return f"{', '.join(shown[:3])}, ..., {shown[-1]} ({len(shown)} values)"
