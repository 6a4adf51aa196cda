"""Placeholder group."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
