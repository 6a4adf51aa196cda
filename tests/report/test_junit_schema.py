"""The JUnit file against a schema of the common format, as a strict CI viewer reads it, also as `gate --junit` writes it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from lxml import etree
from report_scenario import HOSTILE, night

from eval_pipeline.report.junit import junit_xml
from eval_pipeline.tables import GATE_DECISIONS
from eval_pipeline.vocabulary import Language

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))


def read(data):
    top = etree.fromstring(data if isinstance(data, bytes) else data.encode())
    SCHEMA.assertValid(top)
    for part in (top, *top):
        for tag, count in {"testcase": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}.items():
            assert int(part.get(count)) == len(part.findall(f".//{tag}"))
    return top


def gate(verdict, **scenario):
    return night(verdict=verdict, **scenario).frames["gate_decisions"]


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("verdict", ["PASS", "PASS_UNPROVEN", "INCONCLUSIVE", "FAIL", "BLOCKED"])
def test_every_decision_is_valid(verdict, language):
    read(junit_xml(gate(verdict), "e1", language))


@pytest.mark.parametrize("language", list(Language))
def test_hostile_text_stays_valid_and_text(language):
    top = read(junit_xml(gate("FAIL", word=HOSTILE), f"e1{HOSTILE}", language))
    assert not top.findall(".//script")
    assert "]]>" in "".join(top.itertext())
    awkward = "]]> \x00\x01\x0b\x1f\x7f\x85\ud800\ufffe\uffff <![CDATA[ &amp; &#0; \r\n"
    rules = gate("FAIL").with_columns(pl.lit(awkward.replace("\ud800", "")).alias("evidence"))
    read(junit_xml(rules, awkward, language))


def test_a_failed_rule_is_a_failure_that_names_its_items_and_a_blocked_one_an_error():
    failed = read(junit_xml(gate("FAIL"), "e1", Language.EN)).findall(".//failure")
    assert {one.get("type") for one in failed} == {"FAIL", "failure"}
    assert any("q00" in one.text for one in failed)
    blocked = read(junit_xml(gate("BLOCKED"), "e1", Language.EN))
    assert blocked.findall(".//error")


@pytest.mark.parametrize(
    "rules",
    [
        GATE_DECISIONS.frame(),
        gate("PASS").filter(pl.col("rule") == "decision"),
        gate("PASS").filter(pl.col("rule") != "decision"),
        gate("FAIL").filter(pl.col("verdict") == "NOT_EVALUATED"),
    ],
    ids=["no rows", "only a decision", "no decision", "nothing evaluated"],
)
def test_a_gate_that_decided_on_nothing_is_valid_and_red(rules):
    assert int(read(junit_xml(rules, "e1", Language.EN)).get("errors")) > 0
