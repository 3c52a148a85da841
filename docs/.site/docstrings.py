"""How the site reads our docstrings: formulas are plain text, examples need no heading, a warning ends the build."""

from __future__ import annotations

import logging
import re
from typing import Any

from griffe import Extension, Object

_MARKUP = re.compile(r"`[^`]*`|[*_\[\]<]")
_HEADING = re.compile(r"(?:Parameters|Attributes)\n-+")
_RETURNS = re.compile(r"Returns\n-+\n")
_ENTRY = re.compile(r"\n(?P<names>\w+(?:, \w+)*) : (?P<about>.+)(?P<more>(?:\n +.+)*)")
_BARE_TYPE = re.compile(r"(int|float|bool|str|callable|MDP)?(, )?(optional)?")


class Docstrings(Extension):
    """Prepares each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **context: Any) -> None:
        """Rewrite the text in place."""
        del context
        if obj.docstring is not None:
            obj.docstring.value = prepared(obj.docstring.value)


def prepared(text: str) -> str:
    """Paragraphs, then sections, then examples under a heading, which is the order that the parser understands."""
    prose, _, examples = f"\n{text}".partition("\n>>> ")
    paragraphs: list[str] = []
    sections: list[str] = []
    for block in prose.strip("\n").split("\n\n"):
        heading, returns = _HEADING.match(block), _RETURNS.match(block)
        if returns is not None:
            # A colon alone: the type is in the signature.
            sections.append(f"{returns[0]}:\n    {escaped(' '.join(block[returns.end() :].split()))}")
        elif heading is None:
            paragraphs.append(escaped(block))
        elif entries := _described(block[heading.end() :]):
            sections.append(heading[0] + entries)
    if examples:
        sections.append(f"Examples\n--------\n>>> {examples}")
    return "\n\n".join(paragraphs + sections)


def _described(entries: str) -> str:
    """`name, name : words` as names with descriptions; types, and names that have no more, are in the signature."""
    unread = _ENTRY.sub("", entries).strip()
    if unread:
        raise ValueError(f"entries of a docstring must be like 'name : words': got {unread!r}")
    described = ""
    for entry in _ENTRY.finditer(entries):
        about, more = entry["about"], entry["more"].split()
        if _BARE_TYPE.fullmatch(about):
            about = ""
        elif more and more[0][0].isupper() and about[-1] not in ".:;":
            about += "."
        words = escaped(" ".join([about, *more]).strip())
        described += "".join(f"\n{name}\n    {words}" for name in entry["names"].split(", ") if words)
    return described


def escaped(text: str) -> str:
    """Markdown that shows the text as it is, but for code in backticks."""

    def plain(found: re.Match[str]) -> str:
        mark = found[0]
        return mark if len(mark) > 1 else "&lt;" if mark == "<" else f"\\{mark}"

    return _MARKUP.sub(plain, text)


class _Refuse(logging.Handler):
    """A warning about a docstring ends the build, which would otherwise only mention it."""

    def emit(self, record: logging.LogRecord) -> None:
        raise ValueError(record.getMessage())


logging.getLogger("mkdocs.plugins.griffe").addHandler(_Refuse(logging.WARNING))
