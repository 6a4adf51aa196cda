"""Sheets go out blind and come back checked: what is right becomes labels, what is not is listed."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from labelling import as_labels, tasks
from openpyxl import load_workbook

from eval_pipeline.errors import LabelsInvalid, UnknownName
from eval_pipeline.intake import datasets, label_files, label_status, label_tasks, sheets
from eval_pipeline.intake.label_tasks import LabelTask
from eval_pipeline.metrics import declare
from eval_pipeline.vocabulary import Language

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ACCURACY = declare("answer_accuracy")


def exported(folder: Path, suffix: str, count: int = 6) -> tuple[Path, list[LabelTask]]:
    handed_out = tasks(count)
    target = folder / f"sheet.{suffix}"
    sheets.export_sheet(folder, handed_out, ACCURACY, "kim", target, Language.KO)
    return target, handed_out


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="cp949" if path.name == "excel.csv" else "utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_a_csv_sheet_is_marked_for_excel_blind_and_runs_nothing(tmp_path: Path) -> None:
    path, _ = exported(tmp_path, "csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = table(path)
    assert list(rows[0]) == [
        "sheet",
        "item_id",
        "user_input",
        "response",
        "reference",
        "score",
        "note",
        "content_sha256",
    ]
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


def test_an_edited_sheet_gives_what_is_right_and_lists_what_is_not(tmp_path: Path) -> None:
    path, handed_out = exported(tmp_path, "csv", 9)
    rows = table(path)
    scores = ["4.0", " 2 ", "0", "", "4", "3", "4", "fine", "2"]
    for row, score in zip(rows, scores, strict=True):
        row["score"] = score
        row["my own column"] = "x"
    rows[4]["response"] += "!"
    rows[6]["content_sha256"] = "0" * 64
    rows[2]["note"] = "'-not sure"
    rows.append(rows[8] | {"score": "4"})
    rows.reverse()
    write(path, rows)
    got = sheets.import_sheet(tmp_path, path, "kim", NOW)
    assert {row["item_id"]: (row["score"], row["value"]) for row in got.rows} == {
        "q0": (4, 1.0),
        "q1": (2, 0.5),
        "q2": (0, 0.0),
    }
    assert got.blank_count == 1
    assert len(got.problems) == 5
    text = "\n".join(got.problems)
    for problem in ("q4: the text of response was changed", "q5: score 3 is not one of the scale: 0, 2, 4", "q6: its content_sha256 is of no text",
                    "q7: 'fine' is not a number", "q8: two scores for one text"):  # fmt: skip
        assert problem in text
    by_item = {row["item_id"]: row for row in got.rows}
    assert by_item["q2"]["note"] == "-not sure"
    assert by_item["q0"]["texts"] == handed_out[0].texts and by_item["q0"]["inclusion_probability"] == 0.5


def test_a_sheet_that_excel_saved_anew_is_recognised(tmp_path: Path) -> None:
    path, _ = exported(tmp_path, "csv")
    rows = [{name: cell.replace("\n", "\r\n") for name, cell in row.items()} | {"score": "2"} for row in table(path)]
    # cp949 holds no bidirectional mark: the first text cannot be saved in it.
    rows = rows[1:]
    write(tmp_path / "excel.csv", rows)
    got = sheets.import_sheet(tmp_path, tmp_path / "excel.csv", "kim", NOW)
    assert (len(got.rows), got.problems) == (5, [])


def test_an_xlsx_sheet_comes_back_with_numbers_as_numbers(tmp_path: Path) -> None:
    path, _ = exported(tmp_path, "xlsx")
    book = load_workbook(path)
    sheet = book["labels"]
    column = [cell.value for cell in sheet[1]].index("score") + 1
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    for number, score in enumerate([4, 2.0, "0", "4.0", None, 2], 2):
        sheet.cell(number, column).value = score
    book.save(path)
    got = sheets.import_sheet(tmp_path, path, "kim", NOW)
    assert [row["score"] for row in got.rows] == [4, 2, 0, 4, 2]
    assert (got.blank_count, got.problems) == (1, [])


def test_a_text_too_long_for_a_cell_is_not_labelled_by_its_beginning(tmp_path: Path) -> None:
    long = {"user_input": "q", "response": "x" * 40_000, "reference": "r"}
    task = LabelTask("q0", "answer_accuracy", label_tasks.content_sha256(long), long)
    sheets.export_sheet(tmp_path, [task], ACCURACY, "kim", tmp_path / "s.xlsx", Language.EN)
    book = load_workbook(tmp_path / "s.xlsx")
    book["labels"].cell(2, 6).value = 4
    book.save(tmp_path / "s.xlsx")
    got = sheets.import_sheet(tmp_path, tmp_path / "s.xlsx", "kim", NOW)
    assert got.rows == [] and "only in part" in got.problems[0]


def test_a_share_is_labelled_from_nought_to_one(tmp_path: Path) -> None:
    texts = {"user_input": "q", "response": "r", "retrieved_contexts": ["a", "b"]}
    task = LabelTask("q0", "faithfulness", label_tasks.content_sha256(texts), texts)
    sheets.export_sheet(tmp_path, [task], declare("faithfulness"), "kim", tmp_path / "s.csv", Language.EN)
    [row] = table(tmp_path / "s.csv")
    assert row["retrieved_contexts"] == "[1] a\n\n[2] b"
    for score, count in (("0.75", 1), ("1.5", 0), ("nan", 0)):
        write(tmp_path / "s.csv", [row | {"score": score}])
        assert len(sheets.import_sheet(tmp_path, tmp_path / "s.csv", "kim", NOW).rows) == count


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "item_id,score\nq1,4\n"), ("b.json", "[1]"), ("c.json", "{"), ("d.csv", "sheet,score\n../../etc,4\n")],
)
def test_a_file_that_is_no_sheet_of_this_dataset_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(LabelsInvalid):
        sheets.import_sheet(tmp_path, tmp_path / name, "kim", NOW)


def test_saved_labels_are_read_by_a_fresh_clone_and_a_second_thought_replaces_the_first(tmp_path: Path) -> None:
    path, _ = exported(tmp_path, "csv")
    for score in ("4", "0"):
        write(path, [row | {"score": score} for row in table(path)])
        label_files.save(tmp_path, sheets.import_sheet(tmp_path, path, "kim", NOW), "kim")
    labels = datasets.labels(tmp_path, "d")
    assert labels.height == 6 and set(labels["score"]) == {0.0}
    [row] = label_status.status(labels, tmp_path)
    assert (row["metric"], row["human_count"], row["handed_out_count"], row["waiting_count"]) == (
        "answer_accuracy",
        6,
        6,
        0,
    )
    with pytest.raises(UnknownName):
        label_files.save(tmp_path, sheets.Imported([], 0, []), "../kim")


def test_what_two_people_see_differently_goes_to_the_adjudicator_until_it_is_settled() -> None:
    def label(task: LabelTask, annotator: str, value: float) -> dict:
        return {"item_id": task.item_id, "metric": task.metric, "content_sha256": task.content_sha256, "texts": dict(task.texts), "annotator": annotator,
                "score": value * 4, "value": value, "provenance": "human"}  # fmt: skip

    first, second = tasks(2)
    rows = [label(first, "kim", 1.0), label(first, "lee", 0.5), label(second, "kim", 1.0), label(second, "lee", 1.0)]
    assert [task.item_id for task in label_tasks.disagreements(as_labels(rows), "answer_accuracy")] == ["q0"]
    settled = [*rows, label(first, "adjudicated", 1.0)]
    assert label_tasks.disagreements(as_labels(settled), "answer_accuracy") == []


def test_the_draw_takes_rare_scores_too_and_knows_its_probabilities() -> None:
    # 100 texts: 90 scored 1, 8 scored .5, 2 scored 0; 30 asked for. The reserve of 6 goes 5/1/0 by size,
    # then the smallest take is raised first until 30: 0 has only 2, .5 only 8, so 20 come from 1.
    offered = [(task, 1.0 if n < 90 else 0.5 if n < 98 else 0.0) for n, task in enumerate(tasks(100))]
    drawn = label_tasks.draw(offered, 30, seed=7)
    value = {task.content_sha256: score for task, score in offered}
    assert Counter(value[task.content_sha256] for task in drawn) == {1.0: 20, 0.5: 8, 0.0: 2}
    assert {value[task.content_sha256]: task.inclusion_probability for task in drawn} == {
        1.0: 20 / 90,
        0.5: 1.0,
        0.0: 1.0,
    }
    assert Counter(value[task.content_sha256] for task in drawn if task.is_reserve) == {1.0: 5, 0.5: 1}
    # Horvitz-Thompson: the inverse probabilities add up to the 100 that were offered.
    assert sum(1 / task.inclusion_probability for task in drawn) == pytest.approx(100)
    assert label_tasks.draw(offered, 30, seed=7) == drawn != label_tasks.draw(offered, 30, seed=8)
    assert len(label_tasks.draw(offered, 500, seed=7)) == 100
    assert label_tasks.draw([], 5, seed=7) == []


def test_the_stated_probability_is_the_share_of_draws_that_hold_a_text() -> None:
    offered = [(task, (n % 17) / 16) for n, task in enumerate(tasks(60))]
    counts: Counter[str] = Counter()
    stated: dict[str, float] = {}
    for seed in range(400):
        for task in label_tasks.draw(offered, 20, seed):
            counts[task.item_id] += 1
            stated[task.item_id] = task.inclusion_probability
    # 400 draws: sd at most sqrt(.25 / 400) = .025; 60 texts, so 4 sd.
    assert all(abs(counts[item_id] / 400 - probability) < 0.1 for item_id, probability in stated.items())


def test_several_people_share_the_overlap_and_the_arithmetic_is_said() -> None:
    handed_out = label_tasks.assign(tasks(60), ["kim", "lee"], 30)
    assert {name: len(own) for name, own in handed_out.items()} == {"kim": 45, "lee": 45}
    both = {task.item_id for task in handed_out["kim"]} & {task.item_id for task in handed_out["lee"]}
    assert len(both) == 30
    assert label_tasks.arithmetic(60, 2, 30) == "60 items + 30 shared x 1 more = 90 labels"
    assert label_tasks.arithmetic(60, 1, 30) == "60 labels"


def test_candidates_are_the_texts_that_were_scored(finished) -> None:
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import RESPONSES, SCORES

    folder, printed = finished
    warehouse = Warehouse(str(folder / "warehouse"))
    scores, responses = (warehouse.read(table, printed["evaluation_id"]) for table in (SCORES, RESPONSES))
    items = datasets.load(folder / "datasets" / "helpdesk").items
    offered = label_tasks.candidates("answer_accuracy", ACCURACY, items, responses, scores)
    scored = scores.filter(scores["metric"] == "answer_accuracy").drop_nulls("value")
    scored = scored.filter(scored["status"].is_in(["scored", "scored_both", "scored_single"]))
    assert {task.content_sha256 for task, _ in offered} == set(scored["content_sha256"])
    assert json.dumps(label_tasks.as_row(offered[0][0]), ensure_ascii=False)
