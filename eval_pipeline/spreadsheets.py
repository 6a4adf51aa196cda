"""Text that no spreadsheet takes for a formula: one rule for every CSV that leaves here, and the way back."""

from __future__ import annotations

import re

import polars as pl

_RISKY = re.compile("'*[ \u00a0]*[=+\\-@＝＋－＠\t\r\n]")
"""How a formula begins, in full width too, which Korean and Japanese spreadsheets read alike; or such a cell made inert."""


def inert(text: str) -> str:
    """The cell for a CSV: what a spreadsheet would run, or `bare` would strip, gets an apostrophe in front."""
    return f"'{text}" if _RISKY.match(text) else text


def bare(text: str) -> str:
    """A cell of our own CSV without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and _RISKY.match(text) else text


def safe_csv(frame: pl.DataFrame) -> str:
    """A frame without nested columns as CSV, every text and heading inert. Numbers stay numbers."""
    texts = pl.col(pl.String).map_elements(inert, return_dtype=pl.String)
    return frame.with_columns(texts).rename({name: inert(name) for name in frame.columns}).write_csv()
