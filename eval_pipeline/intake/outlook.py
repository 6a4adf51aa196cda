"""How a file would be imported, field by field, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.intake.formats import check_readable, iterate
from eval_pipeline.intake.schemas import Plan, plan
from eval_pipeline.stages.versioning import slug


def look(file: Path, mapping: Mapping[str, str], contexts_as: str | None = None) -> Plan:
    """How a file would be read, from one look at all its rows.

    Raises:
        UsageError: it cannot be read, or its fields need `--map`.
    """
    check_readable(file)
    return plan(file.name, iterate(file), mapping, contexts_as)


def fields(planned: Plan, file: Path, folder: Path, tag: str) -> list[dict[str, Any]]:
    """Field by field what a plan does, before anything is written: field, from (their name), first (value), goes_to."""
    first = next(planned.rows(iterate(file)))
    places: dict[str, Path] = dict.fromkeys(("human_score", "metric", "annotator"), label_file(folder, tag))
    places |= dict.fromkeys(("response", "retrieved_contexts"), response_file(folder, file))
    if "response" not in planned.names.values():
        places["retrieved_contexts"] = folder / "items.jsonl"  # in its metadata
    whole = [(ours, theirs) for theirs, ours in planned.names.items()]
    whole += [("metadata", ", ".join(planned.kept))] if planned.kept else []
    return [
        {"field": ours, "from": theirs, "first": first.get(ours), "goes_to": in_project(places.get(ours, folder / "items.jsonl"), folder)}
        for ours, theirs in whole
    ]  # fmt: skip


def response_file(folder: Path, file: Path) -> Path:
    """Where the responses of an imported file go."""
    return folder / "responses" / f"{slug(Path(file.name.removesuffix('.gz')).stem)}.jsonl"


def label_file(folder: Path, tag: str) -> Path:
    """Where the human scores of an imported file go."""
    return folder / "labels" / f"{slug(tag)}.jsonl"


def in_project(path: Path, folder: Path) -> str:
    """The path as the project sees it."""
    return str(Path("datasets") / folder.name / path.relative_to(folder))
