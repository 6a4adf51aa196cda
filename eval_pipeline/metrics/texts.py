"""Texts as prompts show them, and the hash of the fields a score rests on. Shared by metrics, scoring and labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence


def joined(contexts: Sequence[str] | None) -> str:
    """All contexts as one block, in rank order, a blank line between."""
    return "\n\n".join(contexts or ())


def content_sha256(fields: Mapping[str, object]) -> str:
    """Hash of exactly these fields, by name: what labels and baselines attach to."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, default=list)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
