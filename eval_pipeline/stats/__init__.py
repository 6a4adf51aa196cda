"""Statistics: arrays or counts in, a typed `Stat` out.

Pure functions on numpy; scipy is imported inside the functions that need it, so importing this package is cheap. No
files, no tables, no metric names. `docs/statistics.md` names the source of each formula.
"""

from __future__ import annotations

from .stat import NotANumberError, Stat, undefined

__all__ = ["NotANumberError", "Stat", "undefined"]
