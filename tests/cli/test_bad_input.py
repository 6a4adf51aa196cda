"""Bad input gives one clear error, the right exit code, no traceback, and nothing written."""

import pytest

GOOD = '{"item_id": "a", "user_input": "What is it?", "reference": "It."}\n'


def written(folder):
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def refused(done, code, *words):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    for word in words:
        assert word in done.stderr, (word, done.stderr)


CASES = {
    "not JSON": ("items.jsonl", GOOD + "{oops\n", ["items.jsonl:2", "not JSON"]),
    "a wrong field type": ("items.jsonl", GOOD + '{"item_id": "b", "user_input": 7}\n', ["items.jsonl:2", "user_input"]),
    "contexts as one string": ("items.jsonl", '{"item_id": "b", "user_input": "q?", "reference_contexts": "abc"}\n', ["items.jsonl:1", "reference_contexts", "--contexts-as"]),
    "duplicate ids": ("items.jsonl", GOOD + GOOD, ["'a'", "line 1"]),
    "zero rows": ("items.jsonl", "", ["no rows"]),
    "a ragged CSV": ("items.csv", "item_id,user_input\na,What?\nb\n", ["items.csv:3", "cells"]),
    "NaN": ("items.jsonl", '{"item_id": "a", "user_input": "q?", "reference": NaN}\n', ["items.jsonl:1", "NaN"]),
    "an empty item_id": ("items.csv", "item_id,user_input\na,What?\n,Why?\n", ["items.csv:3", "item_id: empty"]),
    "a NUL in an item_id": ("items.jsonl", '{"item_id": "a\\u0000b", "user_input": "q?"}\n', ["items.jsonl:1", "control character"]),
    "an unknown format": ("items.docx", "x", [".docx"]),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_file_with(what, project, run_cli):
    name, content, words = CASES[what]
    (project / name).write_text(content, encoding="utf-8")
    before = written(project)
    refused(run_cli("dataset", "add", "mine", name, "--tag", "v1", "--message", "m", cwd=project), 2, *words)
    assert written(project) == before


def test_all_bad_rows_are_named_not_the_first_only(project, run_cli):
    (project / "items.jsonl").write_text(
        '{"item_id": "a"}\nnope\n{"item_id": "b", "user_input": "q?"}\n[1]\n', encoding="utf-8"
    )
    refused(
        run_cli("dataset", "add", "mine", "items.jsonl", "--tag", "v1", "--message", "m", cwd=project), 2, ":2:", ":4:"
    )


def test_a_missing_file(project, run_cli):
    refused(
        run_cli("dataset", "add", "mine", "gone.jsonl", "--tag", "v1", "--message", "m", cwd=project),
        2,
        "gone.jsonl",
        "no such file",
    )


@pytest.mark.parametrize("tag", ["../v", "a/b", "latest", ""])
def test_a_tag_that_no_file_may_have(tag, project, run_cli):
    (project / "items.jsonl").write_text(GOOD, encoding="utf-8")
    before = written(project)
    refused(
        run_cli("dataset", "add", "mine", "items.jsonl", "--tag", tag, "--message", "m", cwd=project),
        2,
        "cannot be a tag",
    )
    assert written(project) == before


def test_a_folder_is_not_read_by_accident(project, run_cli):
    before = written(project)
    refused(
        run_cli("dataset", "add", "mine", ".", "--tag", "v1", "--message", "m", cwd=project),
        2,
        "folder",
        "name one file",
    )
    refused(run_cli("calibrate", "--pairs", "datasets", cwd=project), 2, "folder", "name one file")
    refused(run_cli("label", "import", "datasets", "--annotator", "kim", cwd=project), 2, "folder", "name one file")
    assert written(project) == before


def test_a_version_without_a_message(project, run_cli):
    (project / "items.jsonl").write_text(GOOD, encoding="utf-8")
    refused(run_cli("dataset", "add", "mine", "items.jsonl", "--tag", "v1", cwd=project), 2, "--message")


def test_a_tag_that_is_taken(project, run_cli):
    (project / "items.jsonl").write_text(GOOD, encoding="utf-8")
    refused(
        run_cli("dataset", "add", "helpdesk", "items.jsonl", "--tag", "v1", "--message", "m", cwd=project),
        2,
        "v1",
        "do not move",
    )


def test_an_unknown_metric_names_the_nearest(project, run_cli):
    refused(run_cli("run", "--metric", "answer_acuracy", cwd=project), 2, "answer_acuracy", "'answer_accuracy'")
    assert not (project / "warehouse").exists()


def test_an_unknown_key_in_the_configuration_names_the_nearest(project, run_cli):
    path = project / "evaluation.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("calibration:", "calibraton:"), encoding="utf-8")
    refused(run_cli("run", cwd=project), 2, "calibraton", "'calibration'")
    assert not (project / "warehouse").exists()


def test_no_project_at_all(tmp_path, run_cli):
    refused(run_cli("run", cwd=tmp_path), 2, "evaluation.yaml", "init")


def test_a_dataset_of_zero_items_blocks(project, run_cli):
    (project / "datasets" / "helpdesk" / "items.jsonl").write_text("", encoding="utf-8")
    refused(run_cli("run", cwd=project), 3, "helpdesk", "no items")


def test_a_judge_that_is_the_system(project, run_cli):
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace('release: "1.4"', 'release: "1.4"\n    models: [gpt-4o-mini]')
    text = text.replace(
        "embedded: {provider: embedded}",
        "embedded: {provider: openai, model: openai/gpt-4o-mini-2024-07-18, base_url: http://127.0.0.1:9}",
    )
    path.write_text(text, encoding="utf-8")
    refused(run_cli("run", cwd=project), 3, "does not grade itself")


def test_a_judge_that_floats(project, run_cli):
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(
            "embedded: {provider: embedded}",
            "embedded: {provider: openai, model: gpt-4o, base_url: http://127.0.0.1:9}",
        ),
        encoding="utf-8",
    )
    refused(run_cli("run", cwd=project), 3, "gpt-4o", "allow_floating")


def test_bad_sql_is_duckdb_s_own_words(finished, run_cli):
    folder, _ = finished
    refused(run_cli("query", "select nothing from nowhere", cwd=folder), 2, "nowhere")


def test_a_query_before_anything_was_published(project, run_cli):
    refused(run_cli("query", "select 1", cwd=project), 2, "eval-pipeline run")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('evaluation.yaml')",
        "copy (select 1) to 'x.csv'",
        "attach 'x.duckdb'",
        "set threads = 1",
        "install httpfs",
    ],
)
def test_query_reads_the_database_and_nothing_else(sql, finished, run_cli):
    folder, _ = finished
    refused(run_cli("query", sql, cwd=folder), 2, "failed")
    assert not (folder / "x.csv").exists()


def test_errors_are_korean_when_asked(project, run_cli):
    refused(run_cli("run", "--metric", "nope", "--lang", "ko", cwd=project), 2, "없습니다")


def test_no_write_permission(tmp_path, run_cli):
    # Root may write anywhere, so the refusal is provoked by a file where a folder must be.
    (tmp_path / "taken").write_text("", encoding="utf-8")
    refused(run_cli("init", tmp_path / "taken" / "project", cwd=tmp_path), 2, "taken")
