"""The gate as JUnit XML, for the test viewer of a CI system: a rule is a test case.

FAIL is a failure, BLOCKED an error, what was not evaluated or is inconclusive is skipped, and a gate that decided on
nothing is an error: an empty file would be green.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from eval_pipeline.report.inert import line, visible
from eval_pipeline.report.words import rule_name, words
from eval_pipeline.vocabulary import Decision, Language

OUTCOMES = {
    Decision.FAIL: "failure", Decision.BLOCKED: "error", Decision.INCONCLUSIVE: "skipped", Decision.NOT_EVALUATED: "skipped",
}  # fmt: skip


def junit_xml(rules: pl.DataFrame, evaluation_id: str, language: Language, *, exit_code: int | None = None) -> str:
    """One suite named after the evaluation.

    Args:
        rules: `gate_decisions` rows of one evaluation and policy, the decision among them.
        evaluation_id: the suite's name.
        language: of messages and case names.
        exit_code: of the gate; when it is not 0 although no rule failed or blocked (a policy that also fails on
            INCONCLUSIVE), the decision itself is a failure.
    """
    t = words(language)
    rows = rules.to_dicts()
    evidence = "evidence_ko" if language == Language.KO else "evidence"
    cases = [_case(row, row[evidence] or row["evidence"], t) for row in rows if row["rule"] != "decision"]
    decision = next((row for row in rows if row["rule"] == "decision"), None)
    if not cases or decision is None or all(case.find("skipped") is not None for case in cases):
        cases.append(_verdict_case("error", t["no_gate"], t))
    elif decision["verdict"] in {Decision.FAIL, Decision.BLOCKED}:
        cases.append(
            _verdict_case(OUTCOMES[Decision(decision["verdict"])], decision[evidence] or decision["evidence"], t)
        )
    elif exit_code:
        cases.append(
            _verdict_case("failure", f"{decision['verdict']}: {decision[evidence] or decision['evidence']}", t)
        )
    return _document(cases, evaluation_id, rows)


def _case(row: dict[str, Any], evidence: str, t: Any) -> ET.Element:
    case = ET.Element(
        "testcase", classname=_xml(f"eval-pipeline.{row['metric']}"), name=_xml(rule_name(row["rule"], t)), time="0"
    )
    outcome = OUTCOMES.get(row["verdict"])
    items = [line(name, 200) for name in row["item_ids"] or ()]
    if outcome == "skipped":
        ET.SubElement(case, outcome, message=_xml(f"{row['verdict']}: {line(evidence, 800)}"))
    elif outcome:
        found = ET.SubElement(case, outcome, message=_xml(line(evidence, 800)), type=row["verdict"])
        found.text = _xml("\n".join([visible(evidence), *([f"{t['items']} ({len(items)}):", *items] if items else [])]))
    else:
        ET.SubElement(case, "system-out").text = _xml(f"{row['verdict']}: {visible(evidence)}")
    return case


def _verdict_case(outcome: str, text: str, t: Any) -> ET.Element:
    case = ET.Element("testcase", classname="eval-pipeline.all", name=_xml(t["rule decision"]), time="0")
    found = ET.SubElement(case, outcome, message=_xml(line(text, 800)), type=outcome)
    found.text = _xml(visible(text))
    return case


def _document(cases: list[ET.Element], evaluation_id: str, rows: list[dict[str, Any]]) -> str:
    counts = {
        "tests": len(cases),
        **{f"{name}s": sum(case.find(name) is not None for case in cases) for name in ("failure", "error")},
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    top = ET.Element("testsuites", {"name": "eval-pipeline", "time": "0", **numbers})
    when = f"{rows[0]['decided_at']:%Y-%m-%dT%H:%M:%S}" if rows else "1970-01-01T00:00:00"
    about = {"name": _xml(evaluation_id), "timestamp": when, "hostname": "localhost", "time": "0"}
    suite = ET.SubElement(top, "testsuite", about | numbers)
    properties = ET.SubElement(suite, "properties")
    for name in ("policy", "verdict"):
        if rows:
            ET.SubElement(properties, "property", name=name, value=str(rows[0][name]))
    suite.extend(cases)
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def _xml(text: object) -> str:
    """Text with what XML 1.0 cannot hold replaced (`visible` leaves no control characters but tab and newline)."""
    return visible(text).replace("\ufffe", "�").replace("\uffff", "�")
