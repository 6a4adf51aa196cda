"""Texts as prompts show them. Shared by metrics."""

from __future__ import annotations

from collections.abc import Sequence


def joined(contexts: Sequence[str] | None) -> str:
    """All contexts as one block, in rank order, a blank line between."""
    return "\n\n".join(contexts or ())
