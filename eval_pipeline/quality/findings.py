"""What a rule about rows found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule with the rows that break it.

    Attributes:
        rule: name of the rule.
        severity: an error makes results misleading; a warning asks for a look.
        item_ids: the rows; may be cut at 1,000, `count` is exact.
    """

    rule: str
    severity: Literal["error", "warning"]
    message: str
    message_ko: str
    item_ids: tuple[str, ...]
    count: int
