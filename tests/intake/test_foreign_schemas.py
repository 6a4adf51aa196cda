"""Files as other tools export them, built from their documented fields, import without a mapping."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from eval_pipeline.errors import DatasetInvalid, UnknownName
from eval_pipeline.intake.formats import read_rows
from eval_pipeline.intake.schemas import map_rows

Q, A, R, C = "Who lives here?", "The cat does.", "The cat.", ["A cat lives here.", "Since May."]


def jsonl(*rows) -> str:
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def table(*rows) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


SQUAD = {
    "id": "s1",
    "title": "Cats",
    "context": C[0],
    "question": Q,
    "answers": {"text": [R, R], "answer_start": [2, 2]},
}
FILES = {
    "ragas.jsonl": (jsonl({"user_input": Q, "retrieved_contexts": C, "reference_contexts": C[:1], "response": A, "reference": R, "rubrics": None}), "ragas", True),
    "ragas_testset.csv": (table({"user_input": Q, "reference_contexts": str(C), "reference": R, "synthesizer_name": "single_hop"}), "ragas", False),
    "ragas_old.csv": (table({"question": Q, "answer": A, "contexts": str(C), "ground_truth": R}), "ragas (old)", True),
    "ragas_older.jsonl": (jsonl({"question": Q, "answer": A, "contexts": C, "ground_truths": [R]}), "ragas (old)", True),
    "deepeval.json": (json.dumps([{"input": Q, "actual_output": A, "expected_output": R, "retrieval_context": C, "context": C[:1], "name": None,
                                   "comments": None, "source_file": None}]), "deepeval", True),
    "deepeval_goldens.json": (json.dumps([{"input": Q, "actual_output": None, "expected_output": R, "context": C, "additional_metadata": {"a": 1}}]), "deepeval", False),
    "squad.jsonl": (jsonl(SQUAD), "hugging face qa", False),
    "nq_open.jsonl": (jsonl({"question": Q, "answer": [R]}), "hugging face qa", False),
    "openai_evals.jsonl": (jsonl({"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": Q}], "ideal": R}), "openai evals", False),
    "openai_evals_many.jsonl": (jsonl({"input": Q, "ideal": [R]}), "openai evals", False),
    "promptfoo.json": (json.dumps([{"description": "cat", "vars": {"question": Q}, "assert": [{"type": "equals", "value": R}]}]), "promptfoo", False),
    "promptfoo.csv": (table({"question": Q, "__expected": R, "__description": "cat"}), "promptfoo", False),
    "langsmith.jsonl": (jsonl({"id": "e1", "inputs": {"question": Q}, "outputs": {"answer": R}, "metadata": {"dataset_split": ["base"]}}), "langsmith", False),
    "langsmith.csv": (table({"id": "e1", "inputs": json.dumps({"my_key": Q}), "outputs": json.dumps({"mine": R})}), "langsmith", False),
    "langfuse.jsonl": (jsonl({"id": "f1", "datasetName": "d", "input": {"text": Q}, "expectedOutput": {"text": R}, "metadata": None, "status": "ACTIVE"}), "langfuse", False),
    "langfuse.json": (json.dumps({"data": [{"id": "f1", "input": Q, "expectedOutput": R}], "meta": {"page": 1}}), "langfuse", False),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_an_export_of_another_tool_needs_no_mapping(tmp_path: Path, name: str) -> None:
    text, tool, has_response = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    mapped = map_rows(name, read_rows(tmp_path / name), {})
    [row] = mapped.rows
    assert mapped.tool == tool
    assert (row["user_input"], row["reference"]) == (Q, R)
    assert row.get("response") == (A if has_response else None)
    if has_response:
        assert row["retrieved_contexts"] == C


def test_a_hugging_face_folder_is_read_and_each_row_knows_its_split(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / "hf" / split).mkdir(parents=True)
        batch = pa.Table.from_pylist([SQUAD | {"id": split}])
        with (
            pa.OSFile(str(tmp_path / "hf" / split / "data-00000-of-00001.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, batch.schema) as writer,
        ):
            writer.write_table(batch)
    rows = map_rows("hf", read_rows(tmp_path / "hf"), {}).rows
    assert [(row["item_id"], row["reference"], row["reference_contexts"]) for row in rows] == [
        ("test", R, [C[0]]),
        ("train", R, [C[0]]),
    ]
    assert json.loads(rows[0]["metadata"])["split"] == "test"


SENTENCES = [["A cat lives here.", " Since May."], ["It purrs."]]
JOINED = ["A cat lives here. Since May.", "It purrs."]
OBJECTS = {
    "hotpot_qa": {"title": ["Cats", "Purring"], "sentences": SENTENCES},
    "pubmed_qa": {"contexts": JOINED, "labels": ["BACKGROUND", "RESULTS"]},
    "ms_marco": {"is_selected": [1, 0], "passage_text": JOINED, "url": ["u1", "u2"]},
    "list of objects": [{"title": "Cats", "text": JOINED[0]}, {"title": "Purring", "text": JOINED[1]}],
    "one unknown name": {"mine": JOINED},
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_hugging_face_folder_whose_context_is_an_object_gives_its_passages_and_keeps_the_object(
    tmp_path: Path, name: str
) -> None:
    table = pa.Table.from_pylist([{"id": "h1", "question": Q, "answer": R, "context": OBJECTS[name]}])
    (tmp_path / "hf").mkdir()
    with pa.OSFile(str(tmp_path / "hf" / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "hf" / "dataset_info.json").write_text("{}", encoding="utf-8")
    given = {"question": "user_input", "answer": "reference", "id": "item_id"}
    [row] = map_rows("hf", read_rows(tmp_path / "hf"), given).rows
    assert row["reference_contexts"] == JOINED
    assert json.loads(row["metadata"])["context"] == OBJECTS[name]


def test_an_object_of_several_unknown_lists_asks_which_holds_the_texts(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text(
        jsonl({"question": Q, "ground_truth": R, "contexts": {"a": C, "b": C}}), encoding="utf-8"
    )
    rows = read_rows(tmp_path / "o.jsonl")
    with pytest.raises(DatasetInvalid, match=r"o\.jsonl:1: contexts: an object with a, b; say which"):
        map_rows("o.jsonl", rows, {})
    [row] = map_rows("o.jsonl", rows, {"contexts.b": "reference_contexts"}).rows
    assert row["reference_contexts"] == C


def test_nothing_of_a_reshaped_row_is_lost(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(FILES["openai_evals.jsonl"][0], encoding="utf-8")
    [row] = map_rows("e.jsonl", read_rows(tmp_path / "e.jsonl"), {}).rows
    assert json.loads(row["metadata"])["input"][0]["content"] == "Be brief."


def test_answer_alone_is_asked_about_and_a_mapping_settles_it(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(table({"question": Q, "answer": R}), encoding="utf-8")
    rows = read_rows(tmp_path / "q.csv")
    with pytest.raises(DatasetInvalid, match="may be a reference or a response"):
        map_rows("q.csv", rows, {})
    [row] = map_rows("q.csv", rows, {"question": "user_input", "answer": "reference"}).rows
    assert (row["user_input"], row["reference"]) == (Q, R)


def test_a_wrong_guess_is_overridden(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(FILES["deepeval.json"][0], encoding="utf-8")
    rows = read_rows(tmp_path / "d.json")
    [row] = map_rows("d.json", rows, {"actual_output": "reference", "expected_output": "response"}).rows
    assert (row["reference"], row["response"]) == (A, R)


@pytest.mark.parametrize(
    ("given", "hint"), [({"input": "user_inptu"}, "user_input"), ({"inptu": "user_input"}, "'input'")]
)
def test_a_mistyped_mapping_names_the_nearest_field(tmp_path: Path, given: dict[str, str], hint: str) -> None:
    (tmp_path / "d.json").write_text(FILES["deepeval.json"][0], encoding="utf-8")
    with pytest.raises(UnknownName, match=hint):
        map_rows("d.json", read_rows(tmp_path / "d.json"), given)


def test_a_field_that_first_occurs_late_is_mapped_too(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(
        jsonl(*[{"user_input": Q}] * 500, {"user_input": Q, "reference": R}), encoding="utf-8"
    )
    assert map_rows("r.jsonl", read_rows(tmp_path / "r.jsonl"), {}).rows[-1]["reference"] == R
