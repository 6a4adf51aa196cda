"""Foreign field names to ours, from one table; and every row checked before anything is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.errors import AnswerAmbiguous, DatasetInvalid, UnknownName
from eval_pipeline.intake.formats import Row, loads
from eval_pipeline.intake.passages import contexts
from eval_pipeline.spreadsheets import bare
from eval_pipeline.stages.versioning import nfc

ITEM_TEXTS = ("item_id", "user_input", "reference", "stratum", "cluster_id", "language", "source", "updated_at")
LISTS = ("reference_contexts", "retrieved_contexts")
LABEL_TEXTS = ("metric", "annotator")
FIELDS = (*ITEM_TEXTS, *LISTS, *LABEL_TEXTS, "response", "human_score")
OBJECTS = ("inputs", "outputs", "vars", "answers")
"""Columns whose CSV cells hold a JSON object in the tools that have them."""


@dataclass(frozen=True, slots=True)
class Schema:
    """How one tool names our fields.

    Attributes:
        marks: names that together say a file is of this tool.
        names: our field by theirs. A dotted name reaches into objects and, by number, lists; `x.*` is the only text in x.
        passages: their names that hold one passage as plain text.
    """

    tool: str
    marks: tuple[str, ...]
    names: Mapping[str, str]
    passages: tuple[str, ...] = ()


_QUESTIONS = ("question", "input", "query", "prompt", "user_input", "text", "messages", "*")
_ANSWERS = ("answer", "output", "expected", "reference", "ground_truth", "response", "*")


def _inside(name: str, inner: Sequence[str], ours: str) -> dict[str, str]:
    return {f"{name}.{one}": ours for one in inner}


SCHEMAS = (
    Schema("eval-pipeline", ("item_id", "user_input"), {}),
    Schema("labelled judgements", ("user_input", "human_score", "judge_raw"), {"id": "item_id", "group": "cluster_id", "lang": "language"}),
    Schema("deepeval", ("input", "expected_output"), {"input": "user_input", "actual_output": "response", "expected_output": "reference",
           "retrieval_context": "retrieved_contexts", "context": "reference_contexts", "name": "item_id"}),
    Schema("deepeval", ("input", "actual_output"), {"input": "user_input", "actual_output": "response",
           "retrieval_context": "retrieved_contexts", "context": "reference_contexts", "name": "item_id"}),
    Schema("langsmith", ("inputs", "outputs"), {"id": "item_id", **_inside("inputs", _QUESTIONS, "user_input"),
           **_inside("outputs", _ANSWERS, "reference")}),
    Schema("langfuse", ("input", "expectedOutput"), {"id": "item_id", "input": "user_input", "expectedOutput": "reference"}),
    Schema("promptfoo", ("vars",), {"description": "item_id", "vars.reference": "reference", "vars.expected": "reference",
           "assert.0.value": "reference", **_inside("vars", _QUESTIONS, "user_input")}),
    Schema("promptfoo", ("__expected",), {"question": "user_input", "query": "user_input", "input": "user_input",
           "prompt": "user_input", "__expected": "reference", "__description": "item_id"}),
    Schema("openai evals", ("input", "ideal"), {"input": "user_input", "ideal": "reference"}),
    Schema("ragas", ("user_input",), {"id": "item_id"}),
    Schema("ragas (old)", ("question", "ground_truth"), {"question": "user_input", "ground_truth": "reference", "answer": "response",
           "contexts": "retrieved_contexts"}),
    Schema("ragas (old)", ("question", "ground_truths"), {"question": "user_input", "ground_truths": "reference", "answer": "response",
           "contexts": "retrieved_contexts"}),
    Schema("hugging face qa", ("question", "answers"), {"id": "item_id", "question": "user_input", "answers.text": "reference",
           "answers": "reference", "context": "reference_contexts"}, passages=("context",)),
)  # fmt: skip
"""Checked in order; the first whose marks are all among a file's fields is taken."""

QA_LISTS = Schema("hugging face qa", ("question", "answer"), {"id": "item_id", "question": "user_input", "answer": "reference",
                  "context": "reference_contexts"}, passages=("context",))  # fmt: skip
"""Taken when every `answer` is a list of accepted answers; a text could as well be a response."""


MAPPED = Schema("--map", (), {"context": "reference_contexts"}, passages=("context",))
"""Taken when no schema fits and `--map` names the question."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Rows under our names.

    Attributes:
        tool: whose schema was recognised.
        names: our field by theirs, as used.
        rows: one per input row: item fields, and where present response, retrieved_contexts, human_score, metric, annotator.
        kept: their names that no field of ours takes; they are kept in `metadata`.
    """

    tool: str
    names: Mapping[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)
    kept: tuple[str, ...] = ()


@dataclass(slots=True)
class Survey:
    """What fields the rows of a file have.

    Attributes:
        fields: top-level names. paths: these and, dotted, names inside objects and first list members.
        has_listed_answers: every row's `answer` is a list.
        first_answer: the first `answer` there is.
    """

    fields: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    has_listed_answers: bool = True
    first_answer: Any = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes one row into account."""
        self.fields.update(row)
        self.paths.update(_paths(row))
        self.first_answer = row.get("answer") if self.first_answer is None else self.first_answer
        self.has_listed_answers = self.has_listed_answers and isinstance(row.get("answer"), list)


def recognise(survey: Survey, given: Mapping[str, str]) -> tuple[Schema, dict[str, str]]:
    """The schema and the field mapping of a file; `given` (ours by theirs) overrides.

    Raises:
        UnknownName: a mapping to a field that is not ours, or from one that the file does not have.
        AnswerAmbiguous: `answer` could be reference as well as response.
        DatasetInvalid: no schema fits.
    """
    present = survey.paths
    for theirs, target in given.items():
        if target not in FIELDS:
            raise UnknownName(kind="field", name=target, known=FIELDS)
        if theirs not in present:
            raise UnknownName(kind="field of the file", name=theirs, known=present)
    schema = _schema(survey, given)
    taken: dict[str, str] = dict(given)
    own = {name: name for name in FIELDS}
    for theirs, ours in (own | dict(schema.names)).items():
        # Of a field whose inside `--map` names, nothing else is guessed.
        is_there = theirs.removesuffix(".*") in present and not any(name.startswith(f"{theirs}.") for name in given)
        if (
            is_there
            and theirs not in taken
            and (ours not in taken.values() or _alternative(schema, theirs, taken, given))
        ):
            taken[theirs] = ours
    if "answer" in present - taken.keys() and not {"reference", "response"} & set(taken.values()):
        raise _ambiguous(survey, given)
    return schema, taken


def _schema(survey: Survey, given: Mapping[str, str]) -> Schema:
    present = survey.paths
    schema = next((one for one in SCHEMAS if _fits(one, present)), None)
    if schema is None and _fits(QA_LISTS, present) and survey.has_listed_answers:
        schema = QA_LISTS
    if schema is None and "user_input" in given.values():
        schema = MAPPED
    if schema is None and "answer" in present:
        raise _ambiguous(survey, given)
    if schema is None:
        names = ", ".join(sorted(present)[:20])
        advice = f"no known schema has the fields {names}; name them: --map user_input=FIELD --map reference=FIELD"
        raise DatasetInvalid(path="mapping", count=1, problems=f"  {advice}")
    return schema


def _fits(schema: Schema, present: set[str]) -> bool:
    return all(mark in present for mark in schema.marks)


def _alternative(schema: Schema, theirs: str, taken: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether rows may name a field by either of two names, as `inputs.question` and `inputs.query`."""
    others = [name for name, ours in taken.items() if ours == schema.names.get(theirs)]
    return "." in theirs and all("." in name and name not in given for name in others)


def _ambiguous(survey: Survey, given: Mapping[str, str]) -> AnswerAmbiguous:
    """The refusal, with the very options that settle it."""
    asked = next((name for name in _QUESTIONS if name in survey.fields), "FIELD")
    options = [f"--map {ours}={theirs}" for theirs, ours in given.items()]
    options += [] if "user_input" in (*given.values(), asked) else [f"--map user_input={asked}"]
    reference, response = (" ".join([*options, f"--map {ours}=answer"]) for ours in ("reference", "response"))
    return AnswerAmbiguous(first=str(survey.first_answer)[:80], reference=reference, response=response)


def _paths(row: Mapping[str, Any]) -> list[str]:
    nested = [f"{name}.{inner}" for name, value in row.items() if isinstance(value, dict) for inner in value]
    listed = [
        f"{name}.{number}.{inner}"
        for name, value in row.items() if isinstance(value, list)
        for number, one in enumerate(value[:1]) if isinstance(one, dict)
        for inner in one
    ]  # fmt: skip
    return [*row, *nested, *listed]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of one file are read: made from a first look at all of them, then applied to each."""

    name: str
    tool: str
    names: Mapping[str, str]
    kept: tuple[str, ...]
    row_count: int
    reader: _Reader

    def rows(self, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
        """Each row under our names; what is wrong is raised after the last, so that all of it is named.

        Raises:
            DatasetInvalid: every bad row with its line and field.
        """
        problems: list[str] = []
        ids: dict[str, int] = {}
        for number, row in rows:
            found = self.reader.read(number, _unpacked(row), problems)
            if problem := _id_problem(row.get("item_id"), found.get("item_id") or ""):
                problems.append(f"{number}: item_id: {problem}")
            if not found.get("item_id"):
                found["item_id"] = f"row-{number}"
            first = ids.setdefault(found["item_id"], number)
            if first != number:
                problems.append(f"{number}: item_id: {found['item_id']!r} is also on line {first}")
            yield found
        if problems:
            lines = "\n".join(f"  {self.name}:{problem}" for problem in problems)
            raise DatasetInvalid(path=self.name, count=len(problems), problems=lines)


def plan(name: str, rows: Iterable[Row], given: Mapping[str, str], contexts_as: str | None = None) -> Plan:
    """Looks at all rows once and settles how they are read.

    Args:
        name: the file, for messages.
        given: our field by theirs, from `--map`.
        contexts_as: how a contexts cell of one string is to be read: json, python, lines or text.

    Raises:
        UnknownName: a mapping to or from a field that is not there.
        DatasetInvalid: no rows, or no schema fits.
    """
    survey, count = Survey(), 0
    for _, row in rows:
        survey.add(_unpacked(row))
        count += 1
    if not count:
        raise DatasetInvalid(path=name, count=1, problems=f"  {name}: no rows")
    schema, names = recognise(survey, given)
    how = dict.fromkeys(schema.passages, "text") if contexts_as is None else {}
    reader = _Reader(names, frozenset(given), how, contexts_as, name.lower().endswith((".csv", ".tsv")))
    used = {theirs.split(".")[0] for theirs in names} | {"metadata"}
    return Plan(name, schema.tool, names, tuple(sorted(survey.fields - used)), count, reader)


def map_rows(name: str, rows: Sequence[Row], given: Mapping[str, str], contexts_as: str | None = None) -> Mapped:
    """All rows under our names, texts in NFC; arguments and errors are those of `plan` and `Plan.rows`."""
    planned = plan(name, rows, given, contexts_as)
    return Mapped(planned.tool, planned.names, list(planned.rows(rows)), planned.kept)


def _unpacked(row: dict[str, Any]) -> dict[str, Any]:
    """Cells of a table that hold a JSON object, as objects."""
    found = {}
    for name in OBJECTS:
        value = row.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                found[name] = loads(value)
            except ValueError:
                continue
    return row | found if found else row


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads rows under one mapping."""

    names: Mapping[str, str]
    given: frozenset[str]
    passages: Mapping[str, str]
    contexts_as: str | None
    is_table: bool

    def read(self, number: int, row: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
        """One row under our names; what is wrong with it goes to `problems`."""
        found: dict[str, Any] = {}
        reshaped: set[str] = set()
        before = len(problems)
        for theirs, ours in self.names.items():
            value = _reach(row, theirs)
            if value is None or ours in found or (value == "" and ours not in {"response", "user_input"}):
                continue
            if self.is_table and isinstance(value, str) and "content_sha256" in row:
                value = bare(value)
            try:
                typed = nfc(self._typed(theirs, ours, value))
            except ValueError as error:
                problems.append(f"{number}: {theirs}: {error}")
                continue
            if typed is None:
                continue
            found[ours] = typed
            is_same = found[ours] == value or isinstance(value, str) or ours in {"human_score", "item_id"}
            reshaped |= set() if is_same else {theirs.split(".")[0]}
        if not str(found.get("user_input") or "").strip() and len(problems) == before:
            problems.append(f"{number}: user_input: there is no question")
        if found.get("language") not in {None, "ko", "en"}:
            problems.append(f"{number}: language: {found['language']!r} is neither ko nor en")
        try:
            self._keep_rest(row, found, reshaped)
        except ValueError as error:
            problems.append(f"{number}: {error}")
        return found

    def _keep_rest(self, row: Mapping[str, Any], found: dict[str, Any], reshaped: set[str]) -> None:
        """What no field takes goes to `metadata`, as does the original of what changed its shape or its Unicode form."""
        rest = _metadata(row.get("metadata"))
        plain = {name for name in self.names if name in row} - reshaped
        rest |= {
            key: value for key, value in row.items() if key not in plain and key not in {"metadata", "content_sha256"}
        }
        for theirs in plain:
            if isinstance(row[theirs], str) and not row[theirs].isascii() and nfc(row[theirs]) != row[theirs]:
                raw = hashlib.sha256(row[theirs].encode()).hexdigest()
                rest.setdefault("raw_sha256", {})[self.names[theirs]] = raw
        if found.get("response") is None and found.get("retrieved_contexts"):
            rest["retrieved_contexts"] = found["retrieved_contexts"]
        if rest:
            found["metadata"] = json.dumps(rest, ensure_ascii=False, sort_keys=True, default=str, allow_nan=False)

    def _typed(self, theirs: str, ours: str, value: Any) -> Any:
        if ours in LISTS:
            return contexts(value, self.passages.get(theirs, self.contexts_as))
        if ours == "human_score":
            return number_of(value)
        value = _as_text(ours, value)
        if isinstance(value, str):
            return value
        if ours in {"item_id", "cluster_id", "stratum"} and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if theirs in self.given and isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        if "." in theirs and theirs not in self.given:
            return None  # a guess that does not hold for this row; the whole object is in its metadata
        raise ValueError(f"{type(value).__name__} where text belongs")


def _id_problem(given: Any, item_id: str) -> str | None:
    if isinstance(given, str) and not given.strip():
        return "empty; give every row one, or leave the column out"
    if any(character < " " or character == "\x7f" for character in item_id):
        return f"{item_id!r} holds a control character"
    return None


def _metadata(value: Any) -> dict[str, Any]:
    """The metadata column of an export of ours is JSON; another tool's is an object or plain text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = loads(value)
        except ValueError:
            return {"metadata": value}
    return dict(value) if isinstance(value, Mapping) else {} if value in (None, "") else {"metadata": value}


def _reach(row: Mapping[str, Any], path: str) -> Any:
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if part == "*" and isinstance(value, Mapping):
            texts = [one for one in value.values() if isinstance(one, str)]
            return texts[0] if len(texts) == 1 else None
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return None
    return value


def number_of(value: Any) -> float:
    """A score as it may be written: 4, 4.0, "4.0".

    Raises:
        ValueError: it is no finite number.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        found = float(value)
        if not abs(found) < float("inf"):
            raise ValueError
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None
    return found


def _as_text(name: str, value: Any) -> Any:
    """Chat messages as the user's words, an object of one text as that text, accepted answers side by side."""
    if (
        name in {"user_input", "response"}
        and isinstance(value, list)
        and value
        and all(isinstance(one, dict) for one in value)
    ):
        asked = [str(one.get("content", "")) for one in value if one.get("role", one.get("type")) in {"user", "human"}]
        return "\n".join(asked) or str(value[-1].get("content", ""))
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str)]
        return texts[0] if len(texts) == 1 else value
    if name == "reference" and isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return " | ".join(dict.fromkeys(value))
    return value
