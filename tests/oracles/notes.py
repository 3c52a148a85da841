"""What a user does to keep the notes beside a model that was changed by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec


def accept_change(path: Path) -> None:
    """Remove the entry "sha256", as the refusal says."""
    notes = path.with_name(f"{path.name}.meta.json")
    record = msgspec.json.decode(notes.read_bytes())
    del record["sha256"]
    notes.write_bytes(msgspec.json.encode(record))
