"""Labels at the command line: blind sheets out of a run, filled by people, back in, and the judge held against them."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from openpyxl import load_workbook

METRIC = "answer_accuracy"


@pytest.fixture
def own(finished, tmp_path):
    """A project of one's own with one evaluation, and the judge's value by the hash of the judged texts."""
    folder, printed = finished
    shutil.copytree(folder, tmp_path / "p")
    parts = (folder / "warehouse" / "tables" / "scores" / f"evaluation_id={printed['evaluation_id']}").glob("*.parquet")
    scores = pl.concat(map(pl.read_parquet, parts)).filter(pl.col("metric") == METRIC).drop_nulls("value")
    return tmp_path / "p", dict(scores.select("content_sha256", "value").iter_rows())


@pytest.fixture
def label(own, run_cli):
    """`eval-pipeline label ... --json` in that project; exit code and what it printed."""

    def call(*arguments, **variables):
        done = run_cli("label", *arguments, "--json", cwd=own[0], **variables)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    return call


def read(path):
    return list(csv.DictReader(io.StringIO(Path(path).read_text(encoding="utf-8-sig"), newline="")))


def write(path, rows):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def grade(value):
    """What a person who agrees with the judge gives on the scale 0, 2, 4."""
    return 2 * round(2 * value)


def test_two_people_label_what_a_run_judged_and_the_judge_is_calibrated_on_them(own, label, run_cli, tmp_path):
    project, judge = own
    code, sheets = label(
        "export",
        "--metric",
        METRIC,
        "--n",
        "60",
        "--annotators",
        "kim, lee",
        "--overlap",
        "10",
        "--out",
        tmp_path / "s.csv",
    )
    assert code == 0
    assert sheets["arithmetic"] == "60 items + 10 shared x 1 more = 70 labels"
    for name, path in sheets["files"].items():
        # They agree with the judge, but for lee, who sees nothing right in the first, shared text.
        scores = [grade(judge[row["content_sha256"]]) for row in read(path)]
        scores[0] = 4 if name == "kim" else 0
        write(path, [row | {"score": score} for row, score in zip(read(path), scores, strict=True)])
        code, got = label("import", path, "--annotator", name)
        assert (code, got["label_count"], got["problems"]) == (0, 35, [])

    [row] = [row for row in label("status")[1] if row["metric"] == METRIC]
    assert {"kim", "lee"} < set(row["annotators"])
    assert [
        row[key] for key in ("human_count", "shared_count", "disagreement_count", "handed_out_count", "waiting_count")
    ] == [70, 10, 1, 60, 0]

    code, settle = label("export", "--adjudicate", "--metric", METRIC, "--out", tmp_path / "a.csv")
    assert (code, settle["task_count"]) == (0, 1)
    write(settle["files"]["adjudicated"], [row | {"score": "4"} for row in read(settle["files"]["adjudicated"])])
    assert label("import", tmp_path / "a.csv", "--annotator", "adjudicated")[0] == 0
    assert label("export", "--adjudicate", "--metric", METRIC, "--out", tmp_path / "b.csv")[1]["task_count"] == 0
    assert not (tmp_path / "b.csv").exists()

    done = run_cli("calibrate", "--metric", METRIC, "--json", cwd=project)
    [found] = json.loads(done.stdout)
    assert (done.returncode, found["pair_count"], found["label_provenance"], found["decision"]) == (
        0,
        60,
        "human",
        "pass",
    )
    decided = json.loads(run_cli("gate", "--json", cwd=project).stdout)["rules"]
    [rule] = [rule for rule in decided if rule["rule"] == "calibration" and rule["metric"] == METRIC]
    assert rule["verdict"] != "BLOCKED"


def test_a_sheet_edited_in_a_spreadsheet_imports_what_is_right_and_lists_what_is_not(own, label, tmp_path):
    _, sheets = label("export", "--metric", METRIC, "--n", "9", "--annotators", "kim", "--out", tmp_path / "s.csv")
    rows = read(sheets["files"]["kim"])
    for row, score in zip(rows, ["4.0", " 2 ", "0", "", "4", "3", "4", "fine", "2"], strict=True):
        row |= {"score": score, "my own column": "x"}
    rows[4]["response"] += "!"
    rows[6]["content_sha256"] = "0" * 64
    rows.append(rows[8] | {"score": "4"})
    code, got = label("import", write(tmp_path / "s.csv", rows[::-1]), "--annotator", "kim")
    assert (code, got["label_count"], got["blank_count"]) == (1, 3, 1)
    found = "\n".join(got["problems"])
    for index, problem in ((4, "the text of response was changed"), (5, "score 3 is not one of the scale: 0, 2, 4"),
                           (6, "its content_sha256 is of no text"), (7, "'fine' is not a number"), (8, "two scores for one text")):  # fmt: skip
        assert f"{rows[index]['item_id']}: " in found and problem in found
    kept = [json.loads(line) for line in Path(got["path"]).read_text(encoding="utf-8").splitlines()]
    assert {row["item_id"]: row["score"] for row in kept} == {
        rows[0]["item_id"]: 4,
        rows[1]["item_id"]: 2,
        rows[2]["item_id"]: 0,
    }


def test_the_three_kinds_of_sheet_give_the_same_labels(own, label, tmp_path):
    kept = {}
    for suffix in ("csv", "xlsx", "html"):
        path = tmp_path / f"s.{suffix}"
        assert (
            label("export", "--metric", METRIC, "--n", "5", "--annotators", suffix, "--seed", "3", "--out", path)[0]
            == 0
        )
        if suffix == "csv":
            write(path, [row | {"score": "4.0"} for row in read(path)])
        elif suffix == "xlsx":
            book = load_workbook(path)
            column = [cell.value for cell in book["labels"][1]].index("score") + 1
            for number in range(2, 7):
                book["labels"].cell(number, column).value = 4
            book.save(path)
        else:
            data = json.loads(
                re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1]
            )
            path = tmp_path / "page.json"
            path.write_text(
                json.dumps(
                    {
                        "sheet": data["sheet"],
                        "labels": [{"content_sha256": one["content_sha256"], "score": 4} for one in data["tasks"]],
                    }
                )
            )
        code, got = label("import", path, "--annotator", suffix)
        assert (code, got["label_count"], got["problems"]) == (0, 5, [])
        file = Path(got["path"])
        kept[suffix] = [
            {key: row[key] for key in ("content_sha256", "score", "texts")}
            for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())
        ]
        file.unlink()  # or the next sheet would leave these texts out
    assert kept["csv"] == kept["xlsx"] == kept["html"]


def test_nothing_of_a_person_s_work_is_overwritten_unsaid(own, label, run_cli, tmp_path):
    sheet = ("export", "--metric", METRIC, "--n", "3", "--annotators", "kim", "--out", tmp_path / "s.csv")
    assert label(*sheet)[0] == 0
    code, said = label(*sheet)
    assert code == 2 and "s.csv" in said and "--force" in said
    assert "덮어쓰" in label(*sheet, EVAL_LANG="ko")[1]
    assert label(*sheet, "--force")[0] == 0
    for score, replaced in ((4, 0), (4, 0), (0, 3)):
        write(tmp_path / "s.csv", [row | {"score": score} for row in read(tmp_path / "s.csv")])
        assert label("import", tmp_path / "s.csv", "--annotator", "kim")[1]["replaced_count"] == replaced
    done = run_cli("label", "import", tmp_path / "s.csv", "--annotator", "kim", "--lang", "ko", cwd=own[0])
    assert "라벨 3개를 가져왔고" in done.stdout and done.returncode == 0


def test_labels_do_not_calibrate_a_judge_that_did_not_judge_the_evaluation(own, label, run_cli, tmp_path):
    label("export", "--metric", METRIC, "--n", "3", "--annotators", "kim", "--out", tmp_path / "s.csv")
    write(tmp_path / "s.csv", [row | {"score": "2"} for row in read(tmp_path / "s.csv")])
    label("import", tmp_path / "s.csv", "--annotator", "kim")
    config = own[0] / "evaluation.yaml"
    other = "embedded: {provider: openai, model: gpt-4o-mini-2024-07-18, api_key_env: KEY}"
    config.write_text(
        config.read_text(encoding="utf-8").replace("embedded: {provider: embedded}", other), encoding="utf-8"
    )
    done = run_cli("calibrate", cwd=own[0], KEY="x")
    assert done.returncode == 2 and "eval-pipeline run" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("export", "--metric", "answer_acuracy", "--out", "s.csv"), "answer_accuracy"),
        (("export", "--metric", METRIC, "--out", "s.ods"), ".xlsx"),
        (("export", "--metric", METRIC, "--annotators", "../kim", "--out", "s.csv"), "annotator name"),
        (("import", "evaluation.yaml", "--annotator", "kim"), "file format"),
        (("import", "none.csv", "--annotator", "kim"), "no such file"),
        (("import", "datasets/helpdesk/items.jsonl", "--annotator", "kim"), "no sheet of this dataset"),
        (("status", "--dataset", "other"), "helpdesk"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(own, label, arguments, words):
    code, said = label(*arguments)
    assert code == 2 and words in said and "Traceback" not in said
