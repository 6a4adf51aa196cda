"""Row rules of `scores`."""

from __future__ import annotations

from typing import Any


def rules() -> list[Any]:
    """Expectations, each named in its `meta`."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeBetween(column=name, min_value=0, max_value=1, meta={"rule": f"{name} lies in [0, 1]", "severity": "error"})
        for name in ("value", "lower", "upper")
    ]  # fmt: skip
