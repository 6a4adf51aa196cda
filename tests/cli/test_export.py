"""`export`: an evaluation's items and scores as files of other tools."""

import csv
import io
import json

import polars as pl
import pytest

SHAPES = ("csv", "parquet", "jsonl", "ragas", "deepeval")


def test_every_shape_has_every_item_and_the_same_scores(finished, run_cli, tmp_path):
    folder, _ = finished
    texts = {}
    for shape in SHAPES:
        target = tmp_path / shape
        done = run_cli("export", "--as", shape, "--out", target, cwd=folder)
        assert done.returncode == 0, done.stderr
        texts[shape] = target.read_bytes()
    frame = pl.read_parquet(io.BytesIO(texts["parquet"]))
    sql = "select item_id, value from latest_scores where metric = 'answer_accuracy' order by item_id"
    stored = json.loads(run_cli("query", sql, "--format", "json", cwd=folder).stdout)
    assert frame.select("item_id", value="answer_accuracy").to_dicts() == stored
    assert texts["csv"].startswith(b"\xef\xbb\xbf")
    table = list(csv.DictReader(io.StringIO(texts["csv"].decode("utf-8-sig"), newline="")))
    assert [row["item_id"] for row in table] == frame["item_id"].to_list()
    values = frame["answer_accuracy"].to_list()
    rows = {shape: [json.loads(line) for line in texts[shape].splitlines()] for shape in ("jsonl", "ragas", "deepeval")}
    assert [row["answer_accuracy"] for row in rows["jsonl"]] == values
    assert [row["answer_accuracy"] for row in rows["ragas"]] == values
    found = [{one["name"]: one["score"] for one in row["metrics_data"]} for row in rows["deepeval"]]
    assert [row["answer_accuracy"] for row in found] == values


@pytest.mark.parametrize(("language", "said"), [("en", "There is no format named"), ("ko", "형식이(가) 없습니다")])
def test_an_unknown_shape_is_refused_with_those_there_are(finished, run_cli, tmp_path, language, said):
    target = tmp_path / "x"
    done = run_cli("export", "--as", "xls", "--out", target, "--lang", language, cwd=finished[0])
    assert done.returncode == 2
    assert said in done.stderr
    assert "deepeval" in done.stderr
    assert not target.exists()


def test_no_cell_of_an_exported_csv_is_a_formula_in_full_width_either(project, run_cli, tmp_path):
    starts = ("＝", "＋", "－", "＠", "=", "+", "-", "@")
    path = project / "datasets" / "helpdesk" / "responses" / "aurora.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    said = {row["item_id"]: f"{start}cmd|'/C calc'!A0" for row, start in zip(rows, starts, strict=False)}
    changed = [row | {"response": said.get(row["item_id"], row["response"])} for row in rows]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in changed), encoding="utf-8")
    assert run_cli("run", "--metric", "answer_accuracy", cwd=project).returncode == 0
    done = run_cli("query", "select evaluation_id from evaluations", "--format", "json", cwd=project)
    (row,) = json.loads(done.stdout)
    target = tmp_path / "scores.csv"
    assert run_cli("export", "-e", row["evaluation_id"], "--out", target, cwd=project).returncode == 0
    table = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8-sig"), newline="")))
    assert {row["item_id"]: row["response"] for row in table if row["item_id"] in said} == {
        item: f"'{text}" for item, text in said.items()
    }
    assert not [cell for row in table for cell in row.values() if cell.startswith(starts)]
