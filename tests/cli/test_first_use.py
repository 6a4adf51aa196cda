"""What a newcomer sees: the demo, the numbers in the database, the errors."""

import json
import subprocess
import sys

import duckdb
import pytest

COUNTS = (
    "scored_count",
    "no_response_count",
    "invalid_count",
    "no_claims_count",
    "not_applicable_count",
    "not_asked_count",
)


def test_the_demo_evaluates_every_bundled_item(finished):
    _, printed = finished
    whole = [row for row in printed["summaries"] if row["stratum"] == "all"]
    assert {row["metric"] for row in whole} == {
        "answer_accuracy",
        "context_relevance",
        "faithfulness",
        "response_groundedness",
    }
    assert all(row["item_count"] == 135 for row in whole)


def test_every_item_is_accounted_for_in_every_metric_and_stratum(finished):
    _, printed = finished
    for row in printed["summaries"]:
        assert row["item_count"] == sum(row[name] for name in COUNTS), row


def test_constructed_labels_certify_nothing_so_the_demo_gate_blocks(finished):
    _, printed = finished
    assert printed["gate"]["decision"] == "BLOCKED"
    assert any(rule["rule"] == "calibration" and "constructed" in rule["evidence"] for rule in printed["gate"]["rules"])


def test_the_printed_summary_shows_bounds_interval_worst_tenth_and_rho(copied, run_cli):
    folder, _ = copied
    again = run_cli("demo", "--dir", folder, cwd=folder)
    assert again.returncode == 0, again.stderr
    for word in (
        "answer_accuracy",
        "95% CI",
        "if missing",
        "worst10%",
        "invalid",
        "rho",
        "constructed",
        "results.duckdb",
    ):
        assert word in again.stdout, word


def test_a_rerun_asks_the_judge_nothing(copied, run_cli):
    folder, _ = copied
    assert run_cli("run", cwd=folder).returncode == 0
    first, second = json.loads(run_cli("evaluations", "--json", cwd=folder).stdout)
    assert (first["call_count"] > 0, second["call_count"]) == (True, 0)


def test_query_and_a_plain_duckdb_reader_see_the_printed_numbers(finished, run_cli):
    folder, printed = finished
    sql = f"select * from metric_trend where evaluation_id = '{printed['evaluation_id']}'"
    asked = json.loads(run_cli("query", sql, "--format", "json", cwd=folder).stdout)
    with duckdb.connect(printed["database"], read_only=True) as connection:
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description]
        read = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    by_key = {(row["metric"], row["stratum"]): row for row in printed["summaries"]}
    assert len(asked) == len(read) == len(by_key)
    for row in (*asked, *read):
        shown = by_key[row["metric"], row["stratum"]]
        assert row["mean"] == shown["mean"]["value"]
        assert row["cvar10"] == shown["cvar10"]["value"]
        assert row["mean_lower_bound"] == shown["mean_lower_bound"]
        assert row["mean_interval_upper"] == shown["mean_interval"]["upper"]


def test_every_table_view_and_column_has_a_comment(finished):
    _, printed = finished
    with duckdb.connect(printed["database"], read_only=True) as connection:
        bare = connection.execute(
            "select table_name from duckdb_tables() where comment is null and not internal "
            "union all select view_name from duckdb_views() where comment is null and not internal "
            "union all select table_name || '.' || column_name from duckdb_columns() where comment is null and not internal"
        ).fetchall()
    assert bare == []


@pytest.mark.parametrize("verb", [["--help"], ["query", "select 1"]])
def test_light_verbs_import_neither_dagster_nor_great_expectations(verb, finished):
    folder, _ = finished
    code = (
        "import sys; sys.argv = ['eval-pipeline', *sys.argv[1:]]\n"
        "from eval_pipeline.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'dagster', 'great_expectations', 'openai', 'pandas', 'scipy', 'altair'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *verb], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_groups_the_verbs(run_cli, tmp_path):
    shown = run_cli("--help", cwd=tmp_path).stdout
    for group in ("Start", "Run", "Trust", "Data", "Operate"):
        assert group in shown


def test_help_and_summary_exist_in_korean(copied, run_cli):
    folder, _ = copied
    assert "시작" in run_cli("--lang", "ko", "--help", cwd=folder, EVAL_LANG="ko").stdout
    shown = run_cli("demo", "--dir", folder, "--lang", "ko", cwd=folder).stdout
    for word in ("심판을 믿을 수 있는가?", "하위10%", "게이트", "구성"):
        assert word in shown, word
