"""Row rules of `golden_items`."""

from __future__ import annotations

from typing import Any


def rules() -> list[Any]:
    """Expectations, each named in its `meta`."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeUnique(column="item_id", meta={"rule": "item_id is unique", "severity": "error"}),
        gxe.ExpectColumnValuesToMatchRegex(column="user_input", regex=r"\S", meta={"rule": "user_input is a question", "severity": "error"}),
        gxe.ExpectColumnValuesToBeInSet(column="language", value_set=["ko", "en"], meta={"rule": "language is ko or en", "severity": "error"}),
        gxe.ExpectColumnValuesToNotBeNull(column="reference", meta={"rule": "reference is there", "severity": "warning"}),
        gxe.ExpectColumnValueLengthsToBeBetween(column="reference", max_value=20_000, meta={"rule": "reference is not a document", "severity": "warning"}),
        gxe.ExpectColumnValuesToMatchRegex(column="updated_at", regex=r"^\d{4}-\d{2}-\d{2}", meta={"rule": "updated_at is an ISO date", "severity": "warning"}),
    ]  # fmt: skip
