"""Markdown, JUnit, GitHub commands, CSV and the terminal summary: what they say, and that hostile text stays text."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from report_scenario import HOSTILE, METRICS, night
from rich.console import Console

from eval_pipeline.report import exports
from eval_pipeline.report.figures import duration, money, number, signed, span
from eval_pipeline.report.github import annotations, write_step_summary
from eval_pipeline.report.inert import line, visible
from eval_pipeline.report.junit import junit_xml
from eval_pipeline.report.machine import run_json
from eval_pipeline.report.markdown import MARKER, markdown
from eval_pipeline.report.summary import summary_text
from eval_pipeline.report.view import view
from eval_pipeline.tables import GATE_DECISIONS
from eval_pipeline.vocabulary import Language


def printed(found, language=Language.EN, width=110):
    buffer = io.StringIO()
    Console(file=buffer, width=width, highlight=False, color_system=None).print(summary_text(found, language))
    return buffer.getvalue()


# --- the common JUnit schema, as its elements are used by CI viewers


def check_junit(text):
    """Structure of the common schema: names, required attributes, order of children, counts that add up."""
    top = ET.fromstring(text)
    assert top.tag == "testsuites"
    for suite in top:
        assert suite.tag == "testsuite"
        assert {
            "name",
            "tests",
            "failures",
            "errors",
            "skipped",
            "timestamp",
            "hostname",
            "time",
        } <= suite.attrib.keys()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        order = [child.tag for child in suite]
        assert order == ["properties", *["testcase"] * (len(order) - 3), "system-out", "system-err"]
        cases = suite.findall("testcase")
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(name)) == sum(case.find(tag) is not None for case in cases)
        assert int(suite.get("tests")) == len(cases)
        for case in cases:
            assert {"name", "classname", "time"} <= case.attrib.keys()
            assert len(case) <= 1
            assert all(child.tag in {"failure", "error", "skipped", "system-out"} for child in case)
    return top


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("word", ["", HOSTILE])
def test_junit_follows_the_common_schema(language, word):
    found = night(word=word)
    check_junit(junit_xml(found.frames["gate_decisions"], found.evaluation_id, language))


def test_a_failed_rule_is_a_failure_with_its_items_and_a_blocked_one_an_error(bad_night):
    top = check_junit(junit_xml(bad_night.gate, "e1", Language.EN))
    failure = top.find(".//testcase[@classname='eval-pipeline.answer_accuracy']/failure")
    assert failure.get("type") == "FAIL"
    assert "q00013" in failure.text
    blocked = bad_night.gate.with_columns(pl.col("verdict").replace("FAIL", "BLOCKED"))
    assert check_junit(junit_xml(blocked, "e1", Language.EN)).find(".//testcase/error") is not None


def test_what_was_not_evaluated_is_skipped_and_not_passed(bad_night):
    top = check_junit(junit_xml(bad_night.gate, "e1", Language.EN))
    assert [case.get("name") for case in top.iter("testcase") if case.find("skipped") is not None] == [
        "regression (pin)"
    ]


def test_a_gate_that_decided_on_nothing_is_red():
    assert check_junit(junit_xml(GATE_DECISIONS.frame(), "e1", Language.EN)).find(".//error") is not None
    found = night().frames["gate_decisions"]
    only_skipped = found.filter(pl.col("verdict") == "NOT_EVALUATED")
    assert check_junit(junit_xml(only_skipped, "e1", Language.EN)).find(".//error") is not None


def test_an_inconclusive_release_is_red_when_its_exit_code_is():
    found = night(verdict="INCONCLUSIVE").frames["gate_decisions"]
    assert check_junit(junit_xml(found, "e1", Language.EN, exit_code=0)).find(".//failure") is None
    assert check_junit(junit_xml(found, "e1", Language.EN, exit_code=4)).find(".//failure") is not None


# --- GitHub


def test_each_annotation_is_one_command_that_the_data_cannot_forge(hostile_night):
    lines = list(annotations(hostile_night.gate, Language.EN))
    assert len(lines) == 2  # the decision and one failed rule
    for one in lines:
        assert re.match(r"^::(error|warning) title=[^:,\n]*::[^\n]*$", one)
        assert "\r" not in one
        assert "\x1b" not in one
        assert " %0A=cmd" not in one  # its percent sign is escaped


def test_a_newline_a_percent_sign_and_colons_of_the_data_stay_text():
    rows = (
        night()
        .frames["gate_decisions"]
        .with_columns(evidence=pl.lit("50%\r\n::error::forged"), metric=pl.lit("m,a::b\n"))
    )
    for one in annotations(rows, Language.EN):
        assert one.count("\n") == 0
        title, said = one.removeprefix("::error title=").removeprefix("::warning title=").split("::", 1)
        assert "," not in title and ":" not in title
        assert said.startswith("50%25%0A::error::forged")


def test_a_gate_without_a_decision_is_an_annotation():
    assert next(annotations(GATE_DECISIONS.frame(), Language.EN)).startswith("::error ")


def test_the_step_summary_is_appended_and_kept_under_the_limit(tmp_path):
    path = tmp_path / "summary.md"
    write_step_summary("one", str(path))
    write_step_summary("가나다\n" * 200_000, str(path))
    assert path.read_text().startswith("one\n가나다\n")
    assert path.stat().st_size < 1_048_576
    write_step_summary("nowhere", None)


# --- Markdown


@pytest.mark.parametrize("language", list(Language))
def test_markdown_holds_no_markup_link_mention_or_address_of_the_data(hostile_night, language):
    text = markdown(hostile_night, language)
    assert text.startswith(MARKER)
    body = text.removeprefix(MARKER)
    assert "<" not in body
    assert "](" not in body
    assert "https://" not in body
    assert "@maintainer" not in body
    assert "#1" not in body.replace("&#1", "")
    assert "`" not in body
    assert not set("\u202e\u200b\x1b") & set(body)


def test_every_markdown_table_row_has_as_many_cells_as_its_head(hostile_night):
    lines = markdown(hostile_night, Language.EN).splitlines()
    width = 0
    for previous, current in zip(["", *lines], lines, strict=False):
        if current.startswith("|"):
            width = current.count("|") if not previous.startswith("|") else width
            assert current.count("|") == width


# --- the terminal


def test_a_bad_night_says_what_why_where_and_what_next(bad_night):
    text = printed(bad_night)
    assert text.startswith("FAIL  helpdesk@v4 · rag 9f31c23")
    assert "Answers got worse: answer_accuracy -.041" in text
    assert "Responses  30 = 29 answered + 1 failed (HTTP 504 x1)" in text
    assert "Newly failed 14, improved 3" in text
    assert "system 9f31c22 -> 9f31c23; judge, dataset, configuration unchanged" in text
    assert "4,212 calls, 1,061 from ledger, $1.37, 6m41s" in text
    assert "constructed" in text
    assert "Next: eval-pipeline show q00011" in text


def test_a_good_night_gives_no_reason_and_names_no_failure():
    found = night(verdict="PASS")
    found.frames["gate_decisions"] = found.frames["gate_decisions"].with_columns(
        pl.lit([], pl.List(pl.String)).alias("item_ids")
    )
    text = printed(view(found.read, found.evaluation_id))
    assert text.startswith("PASS  ")
    assert "got worse" not in text
    assert "Newly failed" not in text


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("width", [60, 80, 110])
def test_hostile_names_reach_the_terminal_as_plain_text(hostile_night, language, width):
    text = printed(hostile_night, language, width)
    assert not set("\x1b\u202e\u2066\u200b\x00\x07") & set(text)
    assert "[/]" in text  # rich markup is shown, not read


def test_a_partial_evaluation_says_so_in_every_form():
    found = night(is_partial=True)
    seen = view(found.read, found.evaluation_id)
    assert "PARTIAL  limit" in printed(seen)
    assert "**Partial result:** limit" in markdown(seen, Language.EN)
    assert run_json(seen, database="d", report="r", exit_code=3)["is_partial"] is True


@pytest.mark.parametrize(("language", "word"), [(Language.EN, "a remark"), (Language.KO, "한마디")])
def test_a_warning_is_in_every_form_in_its_language(language, word):
    found = night()
    seen = view(found.read, found.evaluation_id)
    assert word in printed(seen, language)
    assert word in markdown(seen, language)
    assert run_json(seen, database="d", report="r", exit_code=0)["warnings"] == ["a remark"]


def test_the_json_of_a_run_has_the_documented_keys_and_no_nan(bad_night):
    found = run_json(bad_night, database="d", report="r", exit_code=1)
    json.dumps(found, allow_nan=False)
    assert {"evaluation_id", "database", "report", "summaries", "gate"} <= found.keys()
    keys = {
        "metric", "stratum", "item_count", "scored_count", "no_response_count", "invalid_count", "no_claims_count", "not_applicable_count",
        "not_asked_count", "mean", "mean_lower_bound", "mean_upper_bound", "mean_interval", "q10", "cvar10", "catastrophic_share",
        "invalid_share", "worst_item_ids",
    }  # fmt: skip
    for row in found["summaries"]:
        assert keys <= row.keys()
        assert {"value", "lower", "upper", "n", "status", "reason", "method", "level"} <= row["mean"].keys()
    assert {"decision", "exit_code", "rules"} <= found["gate"].keys()


# --- exports


def test_ragas_rows_have_its_field_names_and_a_column_per_metric(bad_night):
    rows = exports.ragas_rows(bad_night)
    assert list(rows[0]) == [
        "user_input",
        "response",
        "reference",
        "retrieved_contexts",
        "reference_contexts",
        *METRICS,
    ]
    assert rows[11]["answer_accuracy"] is None  # invalid, not zero


def test_deepeval_rows_carry_the_status_where_there_is_no_score(bad_night):
    rows = {row["name"]: row for row in exports.deepeval_rows(bad_night)}
    assert len(rows) == 30
    assert rows["q00005"]["actual_output"] is None
    assert [one["error"] for one in rows["q00011"]["metrics_data"]] == ["invalid", "invalid"]
    assert rows["q00000"]["metrics_data"][0]["evaluation_model"] == "mini-2026-01-01"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t=", "\r=", "\n=", " =", "\u00a0＝"])
def test_no_csv_cell_starts_a_formula(start):
    frame = pl.DataFrame(
        {
            f"{start}head": [f"{start}cmd|' /C calc'!A0", None, "-1"],
            "list": [["=x"], None, ["y"]],
            "n": [-1.5, None, 2.0],
        }
    )
    text = exports.csv(frame)
    assert text.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))
    assert all(row[0] == "" or row[0].startswith("'") for row in rows)
    assert rows[1][1] == '["=x"]'
    assert rows[1][2] == "-1.5"  # a number stays a number


def test_parquet_round_trips_the_flat_scores(bad_night):
    frame = exports.flat_scores(bad_night)
    assert pl.read_parquet(io.BytesIO(exports.parquet(frame))).equals(frame)
    assert frame["item_id"].is_sorted()


# --- figures and characters


def test_numbers_lose_their_leading_zero_and_null_is_a_dash():
    assert [number(0.842), number(-0.041), number(1.0, 2), number(None), number(-0.0001, 2)] == [
        ".842",
        "-.041",
        "1.00",
        "–",
        ".00",
    ]
    assert [signed(0.03), signed(-0.03), signed(None)] == ["+.03", "-.03", "–"]
    assert [span(0.8, 0.9, 2), span(-0.1, 0.1, 2), span(None, 0.1)] == [".80–.90", "-.10 … .10", "–"]
    assert [money(None, "unknown"), money(0, "?"), money(0.0004, "?"), money(1234.5, "?")] == [
        "unknown",
        "$0.00",
        "$0.0004",
        "$1,234.50",
    ]
    assert [duration(59.4), duration(59.96), duration(401)] == ["59.4s", "1m00s", "6m41s"]


def test_text_that_can_be_seen_is_left_as_it_is():
    plain = "한글, naïve, 日本語, 👍🏽 and\n\ttabs"
    assert visible(plain) == plain
    assert visible(None) == ""
    assert line("a\r\nb\n\nc", 4) == "a b…"
