"""`dataset add` shows how it reads a file before it writes anything, and asks where it cannot know."""

import csv
import json

import pytest

ANSWERS = [
    {"question": "Who lives here?", "answer": "The cat.", "note": "n1"},
    {"question": "Since when?", "answer": "May."},
]


@pytest.fixture
def add(project, run_cli):
    """`eval-pipeline dataset add mine FILE ...` in a fresh project."""

    def call(file, *arguments, **variables):
        return run_cli("dataset", "add", "mine", file, "--tag", "v1", *arguments, cwd=project, **variables)

    return call


def written(project):
    return sorted(path.relative_to(project / "datasets") for path in (project / "datasets").rglob("*"))


def test_an_ambiguous_answer_is_refused_with_the_options_that_settle_it_and_each_of_them_does(project, add):
    (project / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ANSWERS), encoding="utf-8")
    before = written(project)
    refused = add("q.jsonl", "--message", "m")
    assert refused.returncode == 2 and "The cat." in refused.stderr
    assert "기준 답변일 수도 응답일 수도" in add("q.jsonl", "--message", "m", "--lang", "ko").stderr
    assert written(project) == before
    as_reference, as_response = (
        "--map user_input=question --map reference=answer",
        "--map user_input=question --map response=answer",
    )
    assert as_reference in refused.stderr and as_response in refused.stderr
    for options, place in (
        (as_reference, "datasets/mine/items.jsonl"),
        (as_response, "datasets/mine/responses/q.jsonl"),
    ):
        shown = json.loads(add("q.jsonl", "--dry-run", "--json", *options.split()).stdout)["fields"]
        [answer] = [one for one in shown if one["from"] == "answer"]
        assert (answer["first"], answer["goes_to"]) == ("The cat.", place)
    assert written(project) == before


def test_the_preview_comes_first_and_a_dry_run_is_all_of_it(project, add):
    rows = [{"user_input": "Q1?", "response": "A1", "retrieved_contexts": '["c"]', "reference": "R1", "human_score": "4", "extra": "x"},
            {"user_input": "Q2?", "response": "A2", "retrieved_contexts": '["d"]', "reference": "R2", "human_score": "0", "extra": "y"}]  # fmt: skip
    with (project / "r.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    before = written(project)
    dry = add("r.csv", "--metric", "answer_accuracy", "--dry-run", "--lang", "ko")
    assert dry.returncode == 0 and "아무것도 쓰지 않았습니다" in dry.stdout and written(project) == before
    done = add("r.csv", "--metric", "answer_accuracy", "--message", "m")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("mine@v1")[0]
    for line in (
        ("human_score", "4", "labels/v1.jsonl"),
        ("response", "A1", "responses/r.jsonl"),
        ("metadata", "extra", "items.jsonl"),
    ):
        assert any(all(word in row for word in line) for row in table.splitlines()), line
    places = {str(path) for path in written(project)} - {str(path) for path in before}
    assert {"mine/items.jsonl", "mine/labels/v1.jsonl", "mine/responses/r.jsonl"} <= places
