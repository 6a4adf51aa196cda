"""Numbers as people read them: without a leading zero, null as a dash. Formatting only."""

from __future__ import annotations

import math


def number(value: float | None, digits: int = 3) -> str:
    """A number without its leading zero; null as `–`."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign."""
    text = number(value, digits)
    return text if value is None or text.startswith(("-", "–")) else f"+{text}"


def span(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """Two ends; `–` when either is unknown."""
    if lower is None or upper is None:
        return "–"
    return (
        f"{number(lower, digits)}–{number(upper, digits)}"
        if lower >= 0
        else f"{number(lower, digits)} … {number(upper, digits)}"
    )


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal."""
    return "–" if share is None else f"{share:.1%}"


def money(usd: float | None, unknown: str) -> str:
    """Dollars; an unknown cost is said to be unknown, a tiny one is not rounded to nothing."""
    if usd is None:
        return unknown
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{seconds:.1f}s"
