"""How far a long step has come. The command line draws it; elsewhere it is silent."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of each step's size when it begins and of each finished unit."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self) -> None: ...


class Silent:
    """Shows nothing."""

    def begin(self, step: str, total: int) -> None:
        """Ignores it."""

    def advance(self) -> None:
        """Ignores it."""
