"""What a legend lists: the keys of a figure, and what its line styles mean."""

from __future__ import annotations

from robustmdp.app.page.figure import Curve, Figure, Key, Panel, Style

_MOST_NAMES = 3  # more of one style are told apart on hover only


def curves_of(figure: Figure) -> list[Curve]:
    """The curves of all panels."""
    return [curve for panel in figure.panels if isinstance(panel, Panel) for curve in panel.curves]


def keys_of(figure: Figure) -> list[Key]:
    """Its keys, kind by kind: numbers in order, words as they appear."""
    parts = [part for panel in figure.panels for part in (panel.curves if isinstance(panel, Panel) else panel.arrows)]
    found = list(dict.fromkeys(part.key for part in parts))
    kinds = list(dict.fromkeys(key.kind for key in found))
    return sorted(found, key=lambda key: (kinds.index(key.kind), 0.0 if isinstance(key.value, str) else key.value))


def style_of(figure: Figure, key: Key) -> Style:
    """How a key's curves are drawn where they agree, else a plain line."""
    styles = {curve.style for curve in curves_of(figure) if curve.key == key}
    return styles.pop() if len(styles) == 1 else "line"


def styles_of(figure: Figure) -> list[tuple[Style, str]]:
    """Styles with the names of their curves, where there are several styles."""
    names: dict[Style, dict[str, None]] = {}
    for curve in curves_of(figure):
        names.setdefault(curve.style, {}).update({curve.name: None} if curve.name else {})
    if len(names) < 2:
        return []
    return [(style, ", ".join(named)) for style, named in names.items() if 1 <= len(named) <= _MOST_NAMES]


def rows_of(figure: Figure) -> list[tuple[int, ...]]:
    """The numbers of its panels, row by row: diagrams alone, others in up to three columns."""
    rows: list[tuple[int, ...]] = []
    waiting: list[int] = []
    for number, panel in enumerate(figure.panels):
        if isinstance(panel, Panel):
            waiting.append(number)
        if not isinstance(panel, Panel) or len(waiting) == columns_of(figure):
            rows += [tuple(waiting)] if waiting else []
            waiting = []
        if not isinstance(panel, Panel):
            rows.append((number,))
    return rows + ([tuple(waiting)] if waiting else [])


def columns_of(figure: Figure) -> int:
    """How many panels stand side by side."""
    count = sum(isinstance(panel, Panel) for panel in figure.panels)
    return 2 if count == 4 else max(1, min(count, 3))
