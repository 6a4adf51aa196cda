"""A dataset's folder in git: items, log, older versions, labels. Reading formats is `formats`' business.

datasets/<name>/
├── items.jsonl           the newest version, one item a line, in id order
├── log.jsonl             one line a version: hash, tag, message, author, time, parent, counts, changes
├── versions/<hash>.jsonl every version as it was tagged
├── responses/*.jsonl     recorded responses
└── labels/*.jsonl        labels with the texts they are about; replaced/ and sheets/ hold their past and what was handed out
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.errors import (
    DatasetInvalid,
    DatasetNotFound,
    FileUnreadable,
    MessageRequired,
    NotWritable,
    TagExists,
    TagInvalid,
)
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.stages import versioning
from eval_pipeline.tables import DATASET_CHANGES, DATASET_VERSIONS, GOLDEN_ITEMS, HUMAN_LABELS

ITEM_FIELDS = ("item_id", "user_input", "reference", "reference_contexts", "stratum", "cluster_id", "language", "source",
               "updated_at", "metadata")  # fmt: skip

LABEL_FIELDS = ("item_id", "metric", "score", "value", "annotator", "provenance", "content_sha256", "texts")


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """One version with its `golden_items` rows."""

    dataset: str
    dataset_version: str
    tag: str
    message: str
    items: pl.DataFrame


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Line number and object of every line of a JSONL file of ours; blank lines are skipped.

    Raises:
        FileUnreadable: it cannot be read.
        DatasetInvalid: a line is not a JSON object; all such lines are named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    rows, problems = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            problems.append(f"  {path.name}:{number}: not JSON: {error.msg}")
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        else:
            problems.append(f"  {path.name}:{number}: not a JSON object")
    if problems:
        raise DatasetInvalid(path=path, count=len(problems), problems="\n".join(problems))
    return rows


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file whole: literal Hangul, one row a line, by rename.

    Raises:
        NotWritable: it cannot be written.
    """
    _write(path, (_line(row) for row in rows))


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=False) + "\n").encode()


def _write(path: Path, lines: Iterable[bytes]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise NotWritable(path=path, reason=error.strerror or str(error)) from error


def items_frame(dataset: str, rows: Sequence[Mapping[str, Any]], version: str | None = None) -> pl.DataFrame:
    """Canonical items as `golden_items` rows in id order; the version is computed when not given."""
    full = []
    for row in sorted(rows, key=lambda one: one["item_id"]):
        item = canonical_item(row)
        full.append({"dataset": dataset, "dataset_version": "", **item, "content_sha256": versioning.item_sha256(item)})
    frame = GOLDEN_ITEMS.frame(full)
    return frame.with_columns(pl.lit(version or versioning.version_sha256(frame)).alias("dataset_version"))


def canonical_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """An item with all its fields: texts in NFC, a stratum, a language."""
    item = {name: versioning.nfc(row.get(name)) for name in ITEM_FIELDS}
    item["stratum"] = item["stratum"] or "default"
    item["language"] = (
        item["language"] or versioning.detect_language(f"{item['user_input']} {item['reference'] or ''}").value
    )
    return item


def log(folder: Path) -> list[dict[str, Any]]:
    """The versions, oldest first."""
    path = folder / "log.jsonl"
    return [row for _, row in read_lines(path)] if path.exists() else []


def head(folder: Path) -> pl.DataFrame:
    """What `items.jsonl` holds now, tagged or not."""
    return items_frame(folder.name, [row for _, row in read_lines(folder / "items.jsonl")])


def tagged(folder: Path, tag: str = "latest") -> dict[str, Any]:
    """The log entry of one version by tag, `latest`, or the beginning of its hash; its items are not read.

    Raises:
        DatasetNotFound: no such version.
    """
    return _entry(folder, log(folder), tag)


def load(folder: Path, tag: str = "latest") -> DatasetVersion:
    """One version by tag, `latest`, or the beginning of its hash.

    The content is what the files hold: a version whose file was edited comes back under its own, other hash.

    Raises:
        DatasetNotFound: no such version.
    """
    entries = log(folder)
    entry = _entry(folder, entries, tag)
    items = _content(folder, entries, entry)
    return DatasetVersion(folder.name, str(items["dataset_version"][0]) if items.height else entry["dataset_version"],
                          entry["tag"], entry["message"], items)  # fmt: skip


def _entry(folder: Path, entries: Sequence[dict[str, Any]], tag: str) -> dict[str, Any]:
    if not entries:
        raise DatasetNotFound(name=folder.name, version=tag)
    found = [entries[-1]] if tag == "latest" else [entry for entry in entries if entry["tag"] == tag]
    found = found or [entry for entry in entries if len(tag) >= 7 and entry["dataset_version"].startswith(tag)][-1:]
    if len(found) != 1:
        raise DatasetNotFound(name=folder.name, version=tag)
    return found[0]


def _content(folder: Path, entries: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> pl.DataFrame:
    path = folder / "items.jsonl" if entry is entries[-1] else _kept(folder, entry["dataset_version"])
    return items_frame(folder.name, [row for _, row in read_lines(path)])


def moved(folder: Path, tag: str) -> list[str]:
    """What differs between a tag and the content it was given to: dataset, tag, item and fields. Empty when nothing does.

    Args:
        folder: the dataset's.
        tag: a tag or the beginning of a hash; `latest` looks at all versions.
    """
    return [
        f"{folder.name}@{one['tag']}: "
        + (f"item {one['item_id']!r} {one['change']} ({', '.join(one['fields'] or ['whole row'])})" if one["item_id"] else "content")
        + " since it was tagged"
        for one in edits(folder, tag)
    ]  # fmt: skip


def edits(folder: Path, tag: str) -> list[dict[str, Any]]:
    """The same as rows: `{tag, item_id, change, fields}`; item_id is null when the item cannot be told."""
    entries = log(folder)
    chosen = entries if tag == "latest" else [_entry(folder, entries, tag)]
    found: list[dict[str, Any]] = []
    for entry in chosen:
        changes = _moved_items(folder, entries, entry, _content(folder, entries, entry))
        unknown = [] if changes is None else [{"item_id": None, "change": "changed", "fields": None}]
        found += [{"tag": entry["tag"], **change} for change in changes or unknown]
    return found


def source_hashes(root: Path, items: pl.DataFrame) -> dict[str, str]:
    """sha256 of the source documents that are files of the project, by `source`; only of items that keep such a hash."""
    sources = (
        items.filter(pl.col("metadata").str.contains('"source_sha256"', literal=True))["source"].drop_nulls().unique()
    )
    found = {}
    for source in sources:
        path = (root / source).resolve()
        if path.is_relative_to(root.resolve()) and path.is_file():
            found[source] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _moved_items(folder: Path, entries: Sequence[dict[str, Any]], entry: Mapping[str, Any],
                 now: pl.DataFrame) -> list[dict[str, Any]] | None:  # fmt: skip
    """Changes since a version was tagged; null when there are none, empty when they cannot be told."""
    is_intact = versioning.version_sha256(now) == entry["dataset_version"]
    if entry is not entries[-1]:
        return None if is_intact else _against_next(folder, entries, entry, now)
    kept = _kept(folder, entry["dataset_version"])
    if not kept.exists():
        return None if is_intact else []
    before = items_frame(folder.name, [row for _, row in read_lines(kept)])
    return versioning.diff(before, now, ITEM_FIELDS[1:]) or (None if is_intact else [])


def _against_next(folder: Path, entries: Sequence[dict[str, Any]], entry: Mapping[str, Any],
                  now: pl.DataFrame) -> list[dict[str, Any]]:  # fmt: skip
    """An old version's own copy was edited: what the log does not know as a change of the version after it."""
    follower = entries[next(i for i, one in enumerate(entries) if one is entry) + 1]
    logged = {change["item_id"] for change in follower["changes"]}
    changes = versioning.diff(_content(folder, entries, follower), now)
    return [change for change in changes if change["item_id"] not in logged]


def _kept(folder: Path, version: str) -> Path:
    """The copy of a version as it was tagged."""
    return folder / "versions" / f"{version[:16]}.jsonl"


def version_rows(folder: Path) -> pl.DataFrame:
    """`dataset_versions` rows."""
    return DATASET_VERSIONS.frame(
        {
            "dataset": folder.name,
            **{
                name: entry.get(name)
                for name in ("dataset_version", "tag", "message", "author", "parent_version", "item_count")
            },
            "created_at": datetime.fromisoformat(entry["created_at"]),
            "stratum_counts": json.dumps(entry["stratum_counts"], ensure_ascii=False),
        }
        for entry in log(folder)
    )


def change_rows(folder: Path) -> pl.DataFrame:
    """`dataset_changes` rows of all versions."""
    return DATASET_CHANGES.frame(
        {"dataset": folder.name, "dataset_version": entry["dataset_version"], **change}
        for entry in log(folder)
        for change in entry["changes"] or _all_added(folder, entry)
    ).unique(subset=list(DATASET_CHANGES.key), maintain_order=True)


def _all_added(folder: Path, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Changes of a first version, which the log leaves out."""
    kept = _kept(folder, entry["dataset_version"])
    if entry["parent_version"] is not None or not kept.exists():
        return []
    return [{"item_id": row["item_id"], "change": "added", "fields": None} for _, row in read_lines(kept)]


def add_version(folder: Path, rows: Iterable[Mapping[str, Any]], tag: str, message: str, author: str | None,
                now: datetime) -> dict[str, Any]:  # fmt: skip
    """Makes rows the newest version; returns its log entry. A copy of each stays in `versions/`.

    Where the tag names just this content already there is nothing to write, and its entry is returned.

    Rows are taken one by one and may be more than fit in memory; what they raise leaves the folder untouched.

    Raises:
        MessageRequired: no message.
        TagInvalid: the tag is not one that a file may be named after.
        TagExists: the tag names other content already.
    """
    if not message.strip():
        raise MessageRequired()
    if versioning.slug(tag, 64) != tag or tag == "latest":
        raise TagInvalid(tag=tag)
    entries = log(folder)
    known = next((entry for entry in entries if entry["tag"] == tag), None)
    parent = entries[-1] if entries else None
    with Spool() as spool:
        for row in rows:
            spool.add(canonical_item(row))
        version = versioning.hashes_sha256({item_id: place[2] for item_id, place in spool.places.items()})
        if known is not None and known["dataset_version"] == version:
            return known
        if known is not None:
            raise TagExists(name=folder.name, tag=tag, version=known["dataset_version"][:12])
        entry = {
            "dataset_version": version, "tag": tag, "message": message, "author": author, "created_at": now.astimezone(UTC).isoformat(),
            "parent_version": parent["dataset_version"] if parent else None, "item_count": len(spool.places),
            "stratum_counts": dict(sorted(spool.strata.items())),
            # Of a first version all is new; the log need not say it a million times.
            "changes": _changes(folder, parent, spool) if parent else [],
        }  # fmt: skip
        _write(_kept(folder, version), spool.lines())
        _write(folder / "items.jsonl", spool.lines())
    write_lines(folder / "log.jsonl", [*entries, entry])
    return entry


class Spool:
    """Items on disk in the order they came, to be read back in id order. In memory are only ids, places and hashes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self.places: dict[str, tuple[int, int, str]] = {}
        self.strata: Counter[str] = Counter()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, item: Mapping[str, Any]) -> None:
        """Keeps one canonical item."""
        line = _line({name: item[name] for name in ITEM_FIELDS if item[name] is not None})
        self.places[item["item_id"]] = (self._file.tell(), len(line), versioning.item_sha256(item))
        self.strata[item["stratum"]] += 1
        self._file.write(line)

    def line(self, item_id: str) -> bytes:
        """The line of one item."""
        offset, length, _ = self.places[item_id]
        self._file.seek(offset)
        return self._file.read(length)

    def lines(self) -> Iterator[bytes]:
        """All lines in id order."""
        for item_id in sorted(self.places):
            yield self.line(item_id)


def _changes(folder: Path, parent: Mapping[str, Any], spool: Spool) -> list[dict[str, Any]]:
    """Row-level changes since the parent as it was tagged: `items.jsonl` may be the very file that is being added."""
    kept = _kept(folder, parent["dataset_version"])
    found: dict[str, dict[str, Any]] = {}
    left = set(spool.places)
    for _, row in read_lines(kept if kept.exists() else folder / "items.jsonl"):
        old = canonical_item(row)
        item_id = old["item_id"]
        left.discard(item_id)
        if item_id not in spool.places:
            found[item_id] = {"item_id": item_id, "change": "removed", "fields": None}
        elif versioning.item_sha256(old) != spool.places[item_id][2]:
            new = canonical_item(json.loads(spool.line(item_id)))
            found[item_id] = {"item_id": item_id, "change": "changed", "fields": versioning.changed_fields(old, new)}
    found |= {item_id: {"item_id": item_id, "change": "added", "fields": None} for item_id in left}
    return [found[item_id] for item_id in sorted(found)]


def canonical(items: pl.DataFrame) -> list[dict[str, Any]]:
    """Items as stored lines: absent fields left out, so that diffs stay short."""
    return [
        {name: row[name] for name in ITEM_FIELDS if row[name] is not None}
        for row in items.sort("item_id").iter_rows(named=True)
    ]


def labels(folder: Path, dataset: str) -> pl.DataFrame:
    """`human_labels` rows of all files in `labels/`.

    Raises:
        DatasetInvalid: rows that lack a field or whose hash is not that of their texts, by file and line.
    """
    found = _labels(folder / "labels", dataset)
    return found.unique(subset=list(HUMAN_LABELS.key), keep="last", maintain_order=True)


def replaced_labels(folder: Path, dataset: str) -> pl.DataFrame:
    """Rows of labels that the same people gave to the same texts on an earlier day."""
    return _labels(folder / "labels" / "replaced", dataset)


def _labels(folder: Path, dataset: str) -> pl.DataFrame:
    rows, problems = [], []
    for path in sorted(folder.glob("*.jsonl")):
        for number, row in read_lines(path):
            missing = [name for name in LABEL_FIELDS if row.get(name) is None]
            if missing:
                problems.append(f"  {path.name}:{number}: lacks {', '.join(missing)}")
            elif content_sha256(row["texts"]) != row["content_sha256"]:
                problems.append(f"  {path.name}:{number}: content_sha256 is not that of texts")
            else:
                rows.append(_label(row, dataset))
    if problems:
        raise DatasetInvalid(path=folder, count=len(problems), problems="\n".join(problems))
    return HUMAN_LABELS.frame(rows)


def _label(row: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    optional = ("labelled_at", "inclusion_probability", "stratum", "cluster_id", "note")
    return {
        "dataset": dataset, "item_id": row["item_id"], "content_sha256": row["content_sha256"], "metric": row["metric"],
        "annotator": row["annotator"], "score": float(row["score"]), "value": float(row["value"]),
        "provenance": row["provenance"], "texts": json.dumps(row["texts"], ensure_ascii=False),
        **{name: row.get(name) for name in optional},
    }  # fmt: skip
