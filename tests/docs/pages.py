"""The pages as the tests see them: fenced blocks, links, anchors, commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("[CRS]*.md")), *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_REFERENCE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Command:
    """A line that a reader may type, and what the page says it prints."""

    words: str
    output: str = ""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return _FENCE.findall(page.read_text())


def commands(text: str) -> list[Command]:
    """The `robustmdp ...` lines of a block; where lines begin with $, what follows one is its output."""
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE) if text.startswith("$ ") else text.splitlines():
        words, _, output = part.partition("\n")
        if words.startswith("robustmdp "):
            found.append(Command(re.split(r" [#>|]", words)[0].strip(), output))
    return found


def references(page: Path) -> list[str]:
    """The names whose docstrings the page shows."""
    return _REFERENCE.findall(page.read_text())


def links(page: Path) -> list[str]:
    """Targets of links within the repository."""
    prose = _FENCE.sub("", page.read_text())
    return [target for target in _LINK.findall(prose) if not re.match(r"\w+:", target)]


def anchors(page: Path) -> set[str]:
    """Headings as the site numbers them, and the names whose docstrings stand there."""
    prose = _FENCE.sub("", page.read_text())
    return {_slug(heading) for heading in _HEADING.findall(prose)} | set(references(page))


def _slug(heading: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
