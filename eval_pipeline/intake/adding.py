"""From a file to a new dataset version, its recorded responses and its human labels: all of it, or nothing."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from eval_pipeline.errors import DatasetInvalid, MessageRequired, UnknownName
from eval_pipeline.intake import datasets
from eval_pipeline.intake.formats import iterate
from eval_pipeline.intake.outlook import in_project, label_file, look, response_file
from eval_pipeline.intake.schemas import Plan
from eval_pipeline.metrics import available, declare
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.stages.versioning import slug


def folder_of(root: Path, name: str) -> Path:
    """Folder of a dataset by name; a name that could leave `datasets/` is refused.

    Raises:
        UnknownName: the name is not one a folder may have.
    """
    if slug(name, 64) != name:
        raise UnknownName(kind="dataset name (letters, digits, Hangul, `.` and `_`)", name=name, known=[slug(name, 64)])
    return root / "datasets" / name


def parse_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """`ours=theirs` pairs as our field by theirs.

    Raises:
        DatasetInvalid: a pair without `=`.
    """
    found = {}
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not separator or not theirs:
            raise DatasetInvalid(path="--map", count=1, problems=f"  {pair!r} is not OURS=THEIRS")
        found[theirs] = ours
    return found


def preview(
    file: Path, mapping: Mapping[str, str], contexts_as: str | None = None, metric: str | None = None
) -> dict[str, Any]:
    """What `add` would do with a file: tool, names, item_count, response_count, label counts, kept fields, first rows.

    Raises:
        UsageError: what `add` would refuse.
    """
    planned = look(file, mapping, contexts_as)
    first: list[dict[str, Any]] = []
    with tempfile.TemporaryFile() as answers:
        intake = _Intake(answers, metric)
        for row in intake.items(planned.rows(iterate(file))):
            first += [row] if len(first) < 3 else []
    labels, unlabelled = _labels(intake.scored, metric, file.stem, datetime.now(UTC))
    return _summary(planned, intake, labels, unlabelled) | {"first_rows": first}


def add(folder: Path, file: Path, tag: str, message: str, author: str | None, now: datetime, mapping: Mapping[str, str],
        contexts_as: str | None = None, metric: str | None = None, progress: Callable[[int, int], None] | None = None,
        planned: Plan | None = None) -> dict[str, Any]:  # fmt: skip
    """Imports a file as the newest version of a dataset, row by row: twice read, never held whole.

    A response column becomes `responses/<file name>.jsonl`, a human-score column `labels/<tag>.jsonl`.

    Args:
        progress: told (rows done, rows in all) now and then.
        planned: what `look` gave for this file, where it was looked at already.

    Raises:
        UsageError: nothing was written, and why.
    """
    if not message.strip():
        raise MessageRequired()
    planned = planned or look(file, mapping, contexts_as)
    with tempfile.TemporaryFile() as answers:
        intake = _Intake(answers, metric)
        labels: list[dict[str, Any]] = []
        unlabelled: dict[str, int] = {}

        def rows() -> Iterator[dict[str, Any]]:
            for number, row in enumerate(intake.items(planned.rows(iterate(file))), 1):
                if progress is not None and (number % 1_000 == 0 or number == planned.row_count):
                    progress(number, planned.row_count)
                yield row
            # Before the version is written, so that a bad score leaves nothing behind.
            found, missing = _labels(intake.scored, metric, file.stem, now)
            labels.extend(found)
            unlabelled.update(missing)

        entry = datasets.add_version(folder, rows(), tag, message, author, now)
        answers_file = response_file(folder, file)
        if intake.response_count:
            answers.seek(0)
            datasets.write_lines(answers_file, map(json.loads, answers))
    if labels:
        target = label_file(folder, tag)  # it holds some already where the same items come again with other answers
        kept = [row for _, row in datasets.read_lines(target)] if target.exists() else []
        datasets.write_lines(target, [*kept, *labels])
    return _summary(planned, intake, labels, unlabelled) | {
        "dataset_version": entry["dataset_version"], "item_count": entry["item_count"], "tag": tag,
        "response_file": in_project(answers_file, folder) if intake.response_count else None,
    }  # fmt: skip


class _Intake:
    """Takes mapped rows apart: items pass, responses go to a file, rows with a human score are kept."""

    def __init__(self, answers: IO[bytes], metric: str | None) -> None:
        self._answers = answers
        self._metric = metric
        self._needs: dict[str, tuple[str, ...] | None] = {}
        self.response_count = 0
        self.scored: list[tuple[int, dict[str, Any]]] = []

    def items(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows, 1):
            if isinstance(row.get("response"), str):
                self._answers.write((json.dumps(_response(row), ensure_ascii=False) + "\n").encode())
                self.response_count += 1
            if row.get("human_score") is not None:
                self.scored.append((number, row))
                self._keep_loose_score(row)
            yield row

    def _keep_loose_score(self, row: dict[str, Any]) -> None:
        """A score that becomes no label stays with its item, so that nothing of the file is lost."""
        name = self._metric or row.get("metric") or ""
        if name not in self._needs:
            self._needs[name] = declare(name).needs if name in available() else None
        needs = self._needs[name]
        if needs is None or _texts(row, needs) is None:
            kept = json.loads(row.get("metadata") or "{}") | {
                "human_score": row["human_score"],
                "metric": row.get("metric"),
            }
            row["metadata"] = json.dumps(kept, ensure_ascii=False, sort_keys=True)


def _summary(
    planned: Plan, intake: _Intake, labels: Sequence[Mapping[str, Any]], unlabelled: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "tool": planned.tool, "names": dict(planned.names), "kept_in_metadata": list(planned.kept), "item_count": planned.row_count,
        "response_count": intake.response_count, "label_count": len(labels),
        "label_metric": ", ".join(sorted({row["metric"] for row in labels})) or None, "unlabelled": dict(unlabelled),
    }  # fmt: skip


def _response(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"item_id": row["item_id"], "response": row["response"], "retrieved_contexts": row.get("retrieved_contexts"),
            "latency_seconds": None, "error": None}  # fmt: skip


def _labels(
    rows: Sequence[tuple[int, Mapping[str, Any]]], metric: str | None, stem: str, now: datetime
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Label rows of the file's human scores, and the number of scores that attach to nothing, by reason.

    Whether a metric's scores are grades of its scale or shares is decided on the whole column: a 1 beside a 2 is a grade.
    """
    by_metric: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    problems: list[str] = []
    unlabelled: Counter[str] = Counter()
    for number, row in rows:
        name = metric or row.get("metric")
        if name:
            by_metric.setdefault(name, []).append((number, row))
        else:
            problems.append(f"  row {number}: a human score without its metric; add --metric NAME")
    found = []
    for name, scored in by_metric.items():
        if metric is None and name not in available():
            unlabelled[f"there is no metric {name}"] += len(scored)
            continue
        declared = declare(name)
        scale = _scale(declared.label_scale, [row["human_score"] for _, row in scored])
        for number, row in scored:
            value = _value(row["human_score"], scale)
            texts = _texts(row, declared.needs)
            if value is None:
                problems.append(
                    f"  row {number}: human_score {row['human_score']:g} is neither in [0, 1] nor a grade of {name}"
                )
            elif texts is None:
                unlabelled[f"a text that {name} needs is missing"] += 1
            else:
                found.append(_label(row, name, value, texts, stem, now))
    if problems:
        raise DatasetInvalid(path="human scores", count=len(problems), problems="\n".join(problems))
    return found, dict(unlabelled)


def _label(
    row: Mapping[str, Any], metric: str, value: float, texts: Mapping[str, Any], stem: str, now: datetime
) -> dict[str, Any]:
    return {
        "item_id": row["item_id"], "metric": metric, "score": row["human_score"], "value": value,
        "annotator": row.get("annotator") or stem, "provenance": "human", "labelled_at": now.isoformat(),
        "stratum": row.get("stratum"), "cluster_id": row.get("cluster_id"), "content_sha256": content_sha256(texts), "texts": texts,
    }  # fmt: skip


def _scale(scale: tuple[int, ...] | None, scores: Sequence[float]) -> tuple[int, ...] | None:
    """The scale when the column holds its grades, null when it holds shares."""
    return scale if scale is not None and max(scores) > 1 else None


def _value(score: float, scale: tuple[int, ...] | None) -> float | None:
    """The score on [0, 1]; null when it is off its scale."""
    if scale is None:
        return score if 0 <= score <= 1 else None
    return (score - scale[0]) / (scale[-1] - scale[0]) if score in scale else None


def _texts(row: Mapping[str, Any], needs: Sequence[str]) -> dict[str, Any] | None:
    """The fields the metric needs, or null when the row lacks one: such a label attaches to nothing."""
    texts = {name: row.get(name) for name in needs}
    return None if any(value is None for value in texts.values()) else texts


def yaml_snippet(folder: Path, root: Path, done: Mapping[str, Any]) -> str:
    """What to add to evaluation.yaml for a new dataset."""
    lines = ["datasets:", f"  {folder.name}: {{path: {folder.relative_to(root)}, tag: latest}}"]
    if done["response_file"]:
        lines += [
            "systems:",
            f"  {folder.name}_recorded: {{source: recorded, path: {done['response_file']}, release: {done['tag']}}}",
        ]
    return "\n".join(lines)
