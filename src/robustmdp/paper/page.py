"""The page of a reproduction: what was run, the claims, the figures and the settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from robustmdp import __version__
from robustmdp.app.page import DataTable, Figure, Listing, Paragraph, Section
from robustmdp.paper import experiment_named
from robustmdp.paper.claims import dependence
from robustmdp.table import Table

_WHAT = (
    "Every figure and claim of the experiments in “Robust Markov Decision Processes without Model Estimation” "
    "(arXiv 2302.01248), run again. Each claim is a test that can fail; what fails is reported as it is."
)
_PREVIEW = "Some experiments were run with other seeds, lengths or settings than the defaults, so verdicts may differ"
_OURS = ("rates", "step-sizes", "limits", "exploration", "equivalence", "sample-efficiency", "memory")


def sections_of(
    records: Mapping[str, Table], claims: Table, figures: Mapping[str, Figure]
) -> tuple[str, list[Section]]:
    """The lead and the sections; everything is computed from the records."""
    sections = [Section("What was run", (_run(records), *_caveat(records)))]
    if len(claims):
        sections.append(Section("The claims", _claims(claims)))
    paper = tuple(figure for name, figure in figures.items() if name not in _OURS)
    ours = tuple(figure for name, figure in figures.items() if name in _OURS)
    if paper:
        sections.append(Section("The paper's figures", paper))
    if ours:
        sections.append(Section("Beyond the paper", ours))
    if len(claims):
        sections.append(Section("The claims in detail", _details(claims)))
    sections.append(Section("Settings", tuple(part for name in records for part in _settings(name, records[name]))))
    return _WHAT, sections


def _run(records: Mapping[str, Table]) -> Listing:
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
    return Listing(tuple((label, value) for label, value in pairs if value))


def _caveat(records: Mapping[str, Table]) -> tuple[Paragraph, ...]:
    """Where the parameters are not the paper's."""
    changed = [name for name, table in records.items() if departures(name, table)]
    if not changed:
        return ()
    return (Paragraph(f"{_PREVIEW} ({', '.join(changed)}): see the settings at the end."),)


def departures(name: str, table: Table) -> list[str]:
    """The parameters of an experiment that differ from its defaults, the world's apart."""
    usual = msgspec.json.decode(msgspec.json.encode(dataclasses.asdict(experiment_named(name).parameters())))
    return [key for key, value in table.notes["parameters"].items() if key != "stay" and usual.get(key) != value]


def _claims(claims: Table) -> tuple[DataTable | Paragraph, ...]:
    stays = claims.values("stay")
    header = ("claim", "statement", *(f"p = {stay:g}" for stay in stays))
    rows = []
    for (number,), of in claims.groups("claim"):
        verdicts = {float(stay): str(verdict) for stay, verdict in zip(of["stay"], of["verdict"], strict=True)}
        rows.append((number, str(of["statement"][0]), *(verdicts.get(stay, "not run") for stay in stays)))
    table = DataTable(header, tuple(rows), "Verdict by claim and world", tuple(range(2, len(header))))
    differing = dependence(claims)
    if len(stays) > 1 and not differing:
        differing = ["No verdict depends on p."]
    return table, *(Paragraph(sentence) for sentence in differing)


def _details(claims: Table) -> tuple[DataTable, DataTable]:
    names = ("claim", "stay", "verdict", "numbers", "explanation")
    rows = tuple(zip(*(claims[name].tolist() for name in names), strict=True))
    found = DataTable(("claim", "p", "verdict", "numbers", "explanation"), rows, "Every verdict with its numbers", (2,))
    tests = []
    for (number,), of in claims.groups("claim"):
        tests.append((number, "; ".join(of.values("setting")), str(of["test"][0])))
    return found, DataTable(("claim", "setting", "test"), tuple(tests), "How each claim was tested")


def _settings(name: str, table: Table) -> tuple[Paragraph, Listing]:
    parameters = [(key.replace("_", " "), _words(value)) for key, value in table.notes["parameters"].items()]
    facts = [("rows", f"{len(table):,}"), ("seconds", f"{table.notes.get('wall_seconds', 0):,.1f}")]
    return Paragraph(f"{name}: {experiment_named(name).title}"), Listing(tuple(parameters + facts))


def _words(value: Any) -> str:
    if isinstance(value, list):
        shown = [_words(each) for each in value]
        return (
            ", ".join(shown) if len(shown) <= 12 else f"{', '.join(shown[:3])}, ..., {shown[-1]} ({len(shown)} values)"
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
