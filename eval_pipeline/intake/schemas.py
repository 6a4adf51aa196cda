"""Foreign field names to ours, from one table; and every row checked before anything is written."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.errors import DatasetInvalid, UnknownName
from eval_pipeline.intake.formats import Row

ITEM_TEXTS = ("item_id", "user_input", "reference", "stratum", "cluster_id", "language", "source", "updated_at")
LISTS = ("reference_contexts", "retrieved_contexts")
LABEL_TEXTS = ("metric", "annotator")
FIELDS = (*ITEM_TEXTS, *LISTS, *LABEL_TEXTS, "response", "human_score")


@dataclass(frozen=True, slots=True)
class Schema:
    """How one tool names our fields. A dotted name reaches into objects.

    Attributes:
        marks: names that together say a file is of this tool.
        names: our field by theirs.
    """

    tool: str
    marks: tuple[str, ...]
    names: Mapping[str, str]


SCHEMAS = (
    Schema("eval-pipeline", ("item_id", "user_input"), {}),
    Schema("labelled judgements", ("user_input", "human_score", "judge_raw"), {"id": "item_id", "group": "cluster_id", "lang": "language"}),
    Schema("deepeval", ("input", "expected_output"), {"input": "user_input", "actual_output": "response", "expected_output": "reference",
           "retrieval_context": "retrieved_contexts", "context": "reference_contexts", "name": "item_id"}),
    Schema("deepeval", ("input", "actual_output"), {"input": "user_input", "actual_output": "response",
           "retrieval_context": "retrieved_contexts", "context": "reference_contexts", "name": "item_id"}),
    Schema("langsmith", ("inputs", "outputs"), {"id": "item_id", "inputs.question": "user_input", "inputs.input": "user_input",
           "outputs.answer": "reference", "outputs.output": "reference"}),
    Schema("langfuse", ("input", "expectedOutput"), {"id": "item_id", "input": "user_input", "expectedOutput": "reference"}),
    Schema("promptfoo", ("vars",), {"vars.question": "user_input", "vars.query": "user_input", "vars.reference": "reference",
           "vars.expected": "reference", "description": "item_id"}),
    Schema("openai evals", ("input", "ideal"), {"input": "user_input", "ideal": "reference"}),
    Schema("ragas", ("user_input",), {"id": "item_id"}),
    Schema("ragas (old)", ("question", "ground_truth"), {"question": "user_input", "ground_truth": "reference", "answer": "response",
           "contexts": "retrieved_contexts"}),
    Schema("hugging face qa", ("question", "answers"), {"id": "item_id", "question": "user_input", "answers.text": "reference",
           "context": "reference_contexts"}),
)  # fmt: skip
"""Checked in order; the first whose marks are all among a file's fields is taken."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Rows under our names.

    Attributes:
        tool: whose schema was recognised.
        names: our field by theirs, as used.
        rows: one per input row: item fields, and where present response, retrieved_contexts, human_score, metric, annotator.
    """

    tool: str
    names: Mapping[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)


def recognise(rows: Sequence[Row], given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The tool and the field mapping of a file; `given` (ours by theirs) overrides.

    Raises:
        UnknownName: a mapping to a field that is not ours.
        DatasetInvalid: no schema fits, or `answer` could be reference as well as response.
    """
    for target in given.values():
        if target not in FIELDS:
            raise UnknownName(kind="field", name=target, known=FIELDS)
    present = {name for _, row in rows[:200] for name in _paths(row)}
    for schema in SCHEMAS:
        if all(mark in present or any(name.startswith(mark + ".") for name in present) for mark in schema.marks):
            names = {theirs: ours for theirs, ours in schema.names.items() if theirs in present}
            own = {
                name: name for name in FIELDS if name in present and name not in names and name not in names.values()
            }
            taken = set(given.values())
            kept = {theirs: ours for theirs, ours in (own | names).items() if ours not in taken and theirs not in given}
            return schema.tool, kept | dict(given)
    if "user_input" in given.values():
        own = {name: name for name in FIELDS if name in present and name not in given.values()}
        return "--map", own | dict(given)
    hint = (
        "`answer` may be a reference or a response; say which: --map reference=answer or --map response=answer"
        if "answer" in present
        else (
            f"no known schema has the fields {', '.join(sorted(present)[:20])}; name them: --map user_input=FIELD --map reference=FIELD"
        )
    )
    raise DatasetInvalid(path="mapping", count=1, problems=f"  {hint}")


def _paths(row: Mapping[str, Any]) -> list[str]:
    nested = [f"{name}.{inner}" for name, value in row.items() if isinstance(value, dict) for inner in value]
    return [*row, *nested]


def map_rows(name: str, rows: Sequence[Row], given: Mapping[str, str], contexts_as: str | None = None) -> Mapped:
    """All rows under our names.

    Args:
        name: the file, for messages.
        given: our field by theirs, from `--map`.
        contexts_as: how a contexts cell of one string is to be read: json, python, lines or text.

    Raises:
        DatasetInvalid: every bad row with its line and field; nothing is returned then.
    """
    if not rows:
        raise DatasetInvalid(path=name, count=1, problems=f"  {name}: no rows")
    tool, names = recognise(rows, given)
    problems: list[str] = []
    mapped = [_row(number, row, names, contexts_as, problems) for number, row in rows]
    ids: dict[str, int] = {}
    for (number, _), row in zip(rows, mapped, strict=True):
        if not row.get("item_id"):
            row["item_id"] = f"row-{number}"
        first = ids.setdefault(row["item_id"], number)
        if first != number:
            problems.append(f"{number}: item_id: {row['item_id']!r} is also on line {first}")
    if problems:
        raise DatasetInvalid(path=name, count=len(problems), problems="\n".join(f"  {name}:{p}" for p in problems[:50]))
    return Mapped(tool, names, mapped)


def _row(
    number: int, row: Mapping[str, Any], names: Mapping[str, str], contexts_as: str | None, problems: list[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for theirs, ours in names.items():
        value = reach(row, theirs)
        if value is None or (value == "" and ours not in {"response", "user_input"}):
            continue
        try:
            found[ours] = _typed(ours, value, contexts_as)
        except ValueError as error:
            problems.append(f"{number}: {theirs}: {error}")
    if not isinstance(found.get("user_input"), str) or not found["user_input"].strip():
        if not any(p.startswith(f"{number}: ") for p in problems):
            problems.append(f"{number}: user_input: there is no question")
    if found.get("language") not in {None, "ko", "en"}:
        problems.append(f"{number}: language: {found['language']!r} is neither ko nor en")
    rest = {
        key: value
        for key, value in row.items()
        if key not in names and key not in {name.split(".")[0] for name in names}
    }
    if rest:
        found["metadata"] = json.dumps(rest, ensure_ascii=False, sort_keys=True, default=str)
    return found


def reach(row: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path (`judge_raw.0.score`) or a JSONPath that begins with `$`; null when there is none."""
    if path in row:
        return row[path]
    if path.startswith("$"):
        import jsonpath

        return next(iter(jsonpath.findall(path, dict(row))), None)
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _typed(name: str, value: Any, contexts_as: str | None) -> Any:
    if name in LISTS:
        return contexts(value, contexts_as)
    if name == "human_score":
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{value!r} is not a number")
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{value!r} is not a number") from None
    if name == "user_input" and isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return "\n".join(str(one.get("content", "")) for one in value if one.get("role") == "user") or str(
            value[-1].get("content", "")
        )
    if name == "user_input" and isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if name == "reference" and isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return value[0] if len(value) == 1 else " | ".join(value)
    if isinstance(value, bool) or not isinstance(value, str):
        if name in {"item_id", "cluster_id", "stratum"} and isinstance(value, int):
            return str(value)
        raise ValueError(f"{type(value).__name__} where text belongs")
    return value


def contexts(value: Any, how: str | None) -> list[str]:
    """A list of passages. One string is a list only when it is written as one, or `how` says how to read it.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return value
        raise ValueError("a list of contexts holds something that is not text")
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a list of texts belongs")
    if how == "text":
        return [value]
    if how == "lines":
        return [line for line in value.split("\n") if line.strip()]
    for name, read in (("json", json.loads), ("python", ast.literal_eval)):
        if how in {None, name} and value.lstrip().startswith("["):
            try:
                found = read(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(found, list) and all(isinstance(one, str) for one in found):
                return found
    raise ValueError("contexts given as one string; say how to read it with --contexts-as json|python|lines|text")
