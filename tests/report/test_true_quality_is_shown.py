"""The estimate of true quality, wherever people look: machine-readable output, terminal, Markdown and HTML."""

import csv
import io
import json
import shutil

import pytest

METRIC = "answer_accuracy"


@pytest.fixture
def stricter(finished, tmp_path, run_cli):
    """A project where a person labelled 60 judged responses, a quarter of the full marks one level lower than the judge.

    The judged value is not on the sheet; the grade is drawn from the place of the row, the same each time.
    """
    folder = shutil.copytree(finished[0], tmp_path / "p")
    sheet = tmp_path / "sheet.csv"
    done = run_cli("label", "export", "--metric", METRIC, "--n", "60", "--out", sheet, cwd=folder)
    assert done.returncode == 0, done.stderr
    sql = f"select distinct content_sha256, value from scores where metric = '{METRIC}' and value is not null"
    judged = {
        row["content_sha256"]: row["value"] for row in json.loads(run_cli("query", sql, "--json", cwd=folder).stdout)
    }
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    for place, row in enumerate(rows):
        grade = 2 * round(2 * judged[row["content_sha256"]])
        row["score"] = grade - 2 if grade == 4 and place % 4 == 0 else grade
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = run_cli("label", "import", sheet, "--annotator", "kim", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_human_labels_of_a_run_correct_its_mean_and_are_remembered_in_git(stricter, run_cli, tmp_path):
    kept = stricter / "datasets" / "helpdesk" / "calibrations.jsonl"
    assert not kept.exists(), "constructed labels leave nothing"
    done = run_cli("run", "--json", cwd=stricter)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["summaries"]
    whole = next(row for row in found if row["metric"] == METRIC and row["stratum"] == "all")["true_quality"]
    assert whole["estimator"] == "ppi_mean"
    corrected, raw = whole["corrected"], whole["raw"]
    assert corrected["lower"] < corrected["value"] < raw["value"] < 1, "the judge is kinder than the person"
    others = [row for row in found if row["metric"] == METRIC and row["stratum"] != "all"]
    assert {row["true_quality"] for row in others} == {None}

    in_git = kept.read_bytes()
    row = next(row for row in map(json.loads, in_git.decode().splitlines()) if row["stratum"] == "all")
    assert (row["metric"], row["label_provenance"], row["pair_count"]) == (METRIC, "human", 60)

    says = f"by PPI++ from human labels; the judge alone says {raw['value']:.3f}".replace(" 0.", " .")
    assert says in run_cli("run", cwd=stricter).stdout
    for name, where in (("md", tmp_path / "r.md"), ("html", tmp_path / "r.html")):
        assert run_cli("report", "--format", name, "--out", where, cwd=stricter).returncode == 0
        assert says in where.read_text(encoding="utf-8").replace("\\", "")
    assert kept.read_bytes() == in_git, "a night with the same judge and labels changes nothing in git"

    def calibration():
        rules = json.loads(run_cli("gate", "--json", cwd=stricter).stdout)["rules"]
        return next(rule for rule in rules if rule["rule"] == "calibration" and rule["metric"] == METRIC)["evidence"]

    from_warehouse = calibration()
    assert "labels: human" in from_warehouse
    shutil.rmtree(stricter / "warehouse" / "tables" / "calibrations")
    assert calibration() == from_warehouse, "git decides where the warehouse has none"


def test_without_labels_of_the_run_nothing_is_corrected_and_the_reason_is_given(finished):
    rows = [row for row in finished[1]["summaries"] if row["stratum"] == "all"]
    for row in rows:
        assert row["true_quality"]["corrected"] is None
        assert row["true_quality"]["raw"]["value"] == pytest.approx(row["mean"]["value"], abs=0.02)
        assert "fewer than 50 random labels" in row["true_quality"]["reason"]
