"""The page of a reproduction: what was run, the claims, the figures and the settings."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from robustmdp import __version__
from robustmdp.app.page import render
from robustmdp.paper import experiment_named
from robustmdp.paper.claims import dependence
from robustmdp.paper.figures import Figure
from robustmdp.table import Table

TITLE = "Robust MDPs without model estimation, reproduced"
LEAD = (
    "Every figure and claim of the experiments in “Robust Markov Decision Processes without Model Estimation” "
    "(arXiv 2302.01248), run again. Each claim is a test that can fail; what fails is reported as it is."
)
_OURS = ("rates", "step-sizes", "limits", "exploration", "equivalence", "sample-efficiency", "memory")
_BADGES = {"holds": "yes", "does not hold": "no", "within noise": "open"}


def body(records: Mapping[str, Table], claims: Table, figures: Mapping[str, Figure], pictures: Path) -> Any:
    """The sections as HTML; everything is computed from the records, and figures are PNG files in `pictures`."""
    drawn = [(name, figure, _embedded(pictures / f"{name}.png")) for name, figure in figures.items()]
    return render(
        "report.html.j2",
        "robustmdp.paper",
        run=_run(records),
        changed=[name for name, table in records.items() if departures(name, table)],
        claims=_claims(claims),
        dependence=_dependence(claims),
        groups=[
            ("The paper's figures", [each for each in drawn if each[0] not in _OURS]),
            ("Beyond the paper", [each for each in drawn if each[0] in _OURS]),
        ],
        details=_details(claims),
        settings=[(name, experiment_named(name).title, _settings(table)) for name, table in records.items()],
    )


def _embedded(picture: Path) -> str:
    """A picture as a link that holds all of it."""
    return "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode("ascii")


def _run(records: Mapping[str, Table]) -> list[tuple[str, str]]:
    notes = [table.notes for table in records.values()]
    seconds = sum(note.get("wall_seconds", 0.0) for note in notes)
    work = sum(note.get("task_seconds", 0.0) for note in notes)
    starts = sorted(str(note.get("started", "")) for note in notes)
    first = notes[0]
    stays = sorted({stay for note in notes for stay in note["parameters"].get("stay", ())})
    restarts = sorted({note["parameters"]["restart"] for note in notes if "restart" in note["parameters"]})
    seeds = sorted({note["parameters"]["seeds"] for note in notes if "seeds" in note["parameters"]})
    pairs = [
        ("robustmdp", __version__),
        ("experiments", ", ".join(records)),
        ("p (stay)", ", ".join(f"{stay:g}" for stay in stays)),
        ("q (restart)", f"0 in the first chain; {', '.join(f'{q:g}' for q in restarts)} in the one that returns"),
        ("seeds per setting", ", ".join(map(str, seeds))),
        ("started", starts[0]),
        ("time for the records", f"{seconds:,.0f} s, {work:,.0f} s of one core"),
        ("Python, NumPy", ", ".join(str(first.get(key, "?")) for key in ("python", "numpy"))),
        ("machine", str(first.get("machine", "?"))),
    ]
    return [(label, value) for label, value in pairs if value]


def departures(name: str, table: Table) -> list[str]:
    """The parameters of an experiment that differ from its defaults, the world's apart."""
    usual = msgspec.json.decode(msgspec.json.encode(dataclasses.asdict(experiment_named(name).parameters())))
    return [key for key, value in table.notes["parameters"].items() if key != "stay" and usual.get(key) != value]


def _claims(claims: Table) -> dict[str, Any] | None:
    """The verdict of each claim in each world."""
    if not len(claims):
        return None
    stays = claims.values("stay")
    rows = []
    for (number,), of in claims.groups("claim"):
        verdicts = {float(stay): str(verdict) for stay, verdict in zip(of["stay"], of["verdict"], strict=True)}
        rows.append((number, str(of["statement"][0]), *(verdicts.get(stay, "not run") for stay in stays)))
    header = ("claim", "statement", *(f"p = {stay:g}" for stay in stays))
    return {"header": header, "rows": rows, "caption": "Verdict by claim and world", "badges": _BADGES}


def _dependence(claims: Table) -> list[str]:
    """How verdicts depend on the world, where there are several."""
    if not len(claims):
        return []
    return dependence(claims) or (["No verdict depends on p."] if len(claims.values("stay")) > 1 else [])


def _details(claims: Table) -> list[dict[str, Any]]:
    """Every verdict with its numbers, and how each claim was tested."""
    if not len(claims):
        return []
    names = ("claim", "stay", "verdict", "numbers", "explanation")
    rows = list(zip(*(claims[name].tolist() for name in names), strict=True))
    tests = [(number, "; ".join(of.values("setting")), str(of["test"][0])) for (number,), of in claims.groups("claim")]
    return [
        {
            "header": ("claim", "p", "verdict", "numbers", "explanation"),
            "rows": rows,
            "caption": "Every verdict with its numbers",
            "badges": _BADGES,
        },
        {"header": ("claim", "setting", "test"), "rows": tests, "caption": "How each claim was tested"},
    ]


def _settings(table: Table) -> list[tuple[str, str]]:
    parameters = [(key.replace("_", " "), _words(value)) for key, value in table.notes["parameters"].items()]
    return [*parameters, ("rows", f"{len(table):,}"), ("seconds", f"{table.notes.get('wall_seconds', 0):,.1f}")]


def _words(value: Any) -> str:
    if isinstance(value, list):
        shown = [_words(each) for each in value]
        return (
            ", ".join(shown) if len(shown) <= 12 else f"{', '.join(shown[:3])}, ..., {shown[-1]} ({len(shown)} values)"
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
