"""Stand-alone calibration at the command line: published figures, refusals, exit codes."""

import json
import os
import random
from pathlib import Path

import pytest

DATA = (
    Path(os.environ.get("EVAL_DATA_DIR", Path(__file__).parents[3] / "shared" / "data"))
    / "openqa301_answer_accuracy.jsonl"
)


def pairs(tmp_path, rows):
    path = tmp_path / "pairs.csv"
    path.write_text("human,judge\n" + "".join(f"{h},{j}\n" for h, j in rows), encoding="utf-8")
    return path


def calibrated(run_cli, tmp_path, path, *options):
    done = run_cli("calibrate", "--pairs", path, "--json", *options, cwd=tmp_path)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the labelled data is not here")
@pytest.mark.parametrize(
    ("column", "rho", "n", "dropped"),
    [
        ("$.judge_raw[?@.judge=='gpt-4'].score", 0.6965, 1487, 3),
        ("$.judge_raw[?@.judge=='text-davinci-003'].score", 0.6765, 1490, 0),
    ],
)
def test_published_agreement_with_people_is_reproduced(run_cli, tmp_path, column, rho, n, dropped):
    code, found = calibrated(run_cli, tmp_path, DATA, "--human-column", "human_score", "--judge-column", column)
    assert round(found["spearman_rho"]["value"], 4) == rho
    assert (found["pair_count"], found["dropped_count"]) == (n, dropped)
    assert (code, found["decision"]) == (4, "inconclusive")


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the labelled data is not here")
def test_two_annotators_agree_as_published(run_cli, tmp_path):
    columns = ["--human-column", "human_label_raw.annotator1", "--judge-column", "human_label_raw.annotator2"]
    _, found = calibrated(run_cli, tmp_path, DATA, *columns)
    assert (round(found["spearman_rho"]["value"], 4), found["pair_count"]) == (0.7351, 1483)


def test_a_judge_that_agrees_passes(run_cli, tmp_path):
    draw = random.Random(5)
    human = [draw.choice([0, 0.5, 1]) for _ in range(120)]
    rows = [(h, h if draw.random() < 0.95 else 0.5) for h in human]
    code, found = calibrated(run_cli, tmp_path, pairs(tmp_path, rows))
    assert (code, found["decision"]) == (0, "pass")
    assert found["spearman_rho"]["lower"] > 0.7


def test_a_judge_that_guesses_fails(run_cli, tmp_path):
    draw = random.Random(5)
    rows = [(draw.choice([0, 0.5, 1]), draw.choice([0, 0.5, 1])) for _ in range(120)]
    assert calibrated(run_cli, tmp_path, pairs(tmp_path, rows))[0] == 1


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(n % 2, n % 2) for n in range(49)], "49 labels"),
        ([(1, n % 2) for n in range(60)], "constant labels"),
        ([(int(n >= 9), int(n >= 9)) for n in range(60)], "nine labels off the mode"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_too_little_is_untested_not_passed(run_cli, tmp_path, rows, why):
    code, found = calibrated(run_cli, tmp_path, pairs(tmp_path, rows))
    assert (code, found["decision"]) == (3, "untested"), why
    assert found["reason"]


def test_an_inconclusive_one_says_how_many_labels_it_takes(run_cli, tmp_path):
    draw = random.Random(1)
    human = [draw.choice([0, 0.5, 1]) for _ in range(60)]
    rows = [(h, h if draw.random() < 0.8 else draw.choice([0, 0.5, 1])) for h in human]
    code, found = calibrated(run_cli, tmp_path, pairs(tmp_path, rows))
    assert (code, found["decision"]) == (4, "inconclusive")
    assert found["labels_needed"] > 60


def test_a_pair_with_a_missing_side_is_dropped_and_counted(run_cli, tmp_path):
    rows = [(n % 2, n % 2) for n in range(60)] + [("", 1), (1, "")]
    _, found = calibrated(run_cli, tmp_path, pairs(tmp_path, rows))
    assert (found["pair_count"], found["dropped_count"]) == (60, 2)


def test_an_unknown_column_names_the_nearest(run_cli, tmp_path):
    path = pairs(tmp_path, [(1, 1)])
    done = run_cli("calibrate", "--pairs", path, "--judge-column", "judeg", cwd=tmp_path)
    assert done.returncode == 2
    assert "'judge'" in done.stderr
