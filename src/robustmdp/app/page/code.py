"""Lines to be copied, with the button that copies them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from robustmdp import _checks


@dataclass(frozen=True)
class Code:
    """A program or what it prints, letter for letter, with a button that copies it.

    >>> "<code>1 &lt; 2</code>" in Code("1 < 2").html()
    True
    """

    text: str
    language: str = "python"

    def __post_init__(self) -> None:
        _checks.must(bool(self.text.strip()), "the text of a code block must not be empty")

    def html(self) -> str:
        name = escape(self.language)
        return (
            f'<div class="code"><div class="bar"><span>{name}</span>'
            f'<button type="button" data-copy aria-live="polite">Copy</button></div>'
            f'<pre role="region" tabindex="0" aria-label="{name} code"><code>{escape(self.text)}</code></pre></div>'
        )
