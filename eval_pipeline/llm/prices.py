"""What calls cost: a dated table, overridable; an unknown price is null, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

Price = Mapping[str, Any]
"""`input`, `cached_input` (default: input) and `output`, in USD per million tokens; `retires_at` where known."""
BATCH_SHARE = 0.5
"""Providers charge half the listed price for a batch."""


@cache
def table() -> dict[str, Any]:
    """The price table: `dated`, and `models` by name with USD per million tokens."""
    return yaml.safe_load((files("eval_pipeline.llm") / "prices.yaml").read_text(encoding="utf-8"))


def cost(
    model: str,
    input_tokens: int | None,
    cached_tokens: int | None,
    output_tokens: int | None,
    prices: Mapping[str, Price] | None = None,
) -> float | None:
    """USD for one reply, or null when the price or the usage is unknown. `prices` goes over the shipped table."""
    price = (prices or {}).get(model) or table()["models"].get(model)
    if price is None or input_tokens is None or output_tokens is None:
        return None
    cached = min(cached_tokens or 0, input_tokens)
    rate = price.get("cached_input", price["input"])
    return ((input_tokens - cached) * price["input"] + cached * rate + output_tokens * price["output"]) / 1_000_000


def retires_at(model: str) -> date | None:
    """The day on which the provider retires a pinned model, where known."""
    found = (table()["models"].get(model) or {}).get("retires_at")
    return date.fromisoformat(str(found)) if found else None
