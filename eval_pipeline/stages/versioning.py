"""Dataset versions: the canonical form of an item, content hashes, and what changed between two versions."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from eval_pipeline.vocabulary import Language

CONTENT_FIELDS = ("user_input", "reference", "reference_contexts", "stratum", "cluster_id", "language", "metadata")
"""Fields whose change makes another version. Source and date do not: they say where the content comes from."""


def nfc(value: Any) -> Any:
    """Text (also inside lists) in Unicode NFC; anything else as it is."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    return [nfc(one) for one in value] if isinstance(value, list) else value


def item_sha256(item: Mapping[str, Any]) -> str:
    """Hash of one item's content."""
    return _sha256({"item_id": item["item_id"], **{name: item.get(name) for name in CONTENT_FIELDS}})


def version_sha256(items: pl.DataFrame) -> str:
    """Hash of a whole version: of its items' hashes in id order, so the order of lines does not count."""
    return hashes_sha256(dict(items.select("item_id", "content_sha256").iter_rows()))


def hashes_sha256(hashes: Mapping[str, str]) -> str:
    """The same, from the items' hashes by id."""
    return _sha256(hashes)


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def diff(old: pl.DataFrame | None, new: pl.DataFrame, compared: Sequence[str] = CONTENT_FIELDS) -> list[dict[str, Any]]:
    """Row-level changes, by id: `{item_id, change, fields}`; fields is null unless changed."""
    before = {} if old is None else {row["item_id"]: row for row in old.iter_rows(named=True)}
    after = {row["item_id"]: row for row in new.iter_rows(named=True)}
    found = []
    for item_id in sorted(before.keys() | after.keys()):
        if item_id not in before:
            found.append({"item_id": item_id, "change": "added", "fields": None})
        elif item_id not in after:
            found.append({"item_id": item_id, "change": "removed", "fields": None})
        elif fields := changed_fields(before[item_id], after[item_id], compared):
            found.append({"item_id": item_id, "change": "changed", "fields": fields})
    return found


def changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any], compared: Sequence[str] = CONTENT_FIELDS
) -> list[str]:
    """Names of the fields that differ."""
    return [name for name in compared if before[name] != after[name]]


def stratum_counts(items: pl.DataFrame) -> dict[str, int]:
    """Items by stratum."""
    return dict(sorted(Counter(items["stratum"]).items()))


def detect_language(text: str) -> Language:
    """Korean when at least a fifth of the letters are Hangul: Korean answers quote Latin names, not the reverse."""
    if text.isascii():
        return Language.EN
    letters = [c for c in text if c.isalpha()]
    hangul = sum("가" <= c <= "힣" or "ㄱ" <= c <= "ㆎ" or "ᄀ" <= c <= "ᇿ" for c in letters)
    return Language.KO if letters and hangul / len(letters) >= 0.2 else Language.EN


def duplicates(ids: Sequence[str]) -> list[str]:
    """Ids that occur more than once."""
    return sorted(name for name, count in Counter(ids).items() if count > 1)


def slug(text: str, length: int = 40) -> str:
    """A text as part of a key or file name: letters (Hangul too), digits, dot and underscore; anything else is `-`."""
    return re.sub(r"[^0-9A-Za-z가-힣._]+", "-", text).strip("-.")[:length] or "x"
