"""What Dagster's UI shows of a run made at the command line, asked of its own GraphQL API."""

import ast
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from eval_pipeline.defs import assets

pytestmark = pytest.mark.daemon
CHAIN = [
    "golden_items",
    "responses",
    "claims",
    "verdicts",
    "scores",
    "summaries",
    "calibrations",
    "gate_decisions",
    "results",
    "report",
]

CHECKS = {
    "golden_items_suite", "accounting_identity", "invalid_grade_rate", "bottom_decile", "judge_agreement", "canary_drift",
    "calibration_freshness", "label_provenance", "cost_against_budget", "gate_decision",
}  # fmt: skip
ITEM = r"\b(en|ko)-[a-z]+-\d+"


@pytest.fixture(scope="module")
def webserver(finished, clean_environment):
    """A real dagster-webserver on the finished project; its URL."""
    with served(finished[0], clean_environment) as url:
        yield url


@contextmanager
def served(folder, clean_environment):
    """A real dagster-webserver on a project, loaded from its workspace.yaml; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("dagster-webserver")),
        "-w",
        "workspace.yaml",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    environment = clean_environment(DAGSTER_HOME=str(folder / "dagster_home"), EVAL_PROJECT=str(folder))
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{url}/server_info", timeout=2).read()
                break
            except OSError:
                assert process.poll() is None, "the webserver ended"
                time.sleep(0.25)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def ask(url, query):
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        found = json.loads(reply.read())
    assert "errors" not in found, found
    return found["data"]


def test_the_code_location_loads_the_chain_in_order(webserver):
    nodes = ask(webserver, "{ assetNodes { assetKey { path } description dependencyKeys { path } } }")["assetNodes"]
    by_name = {node["assetKey"]["path"][0]: node for node in nodes}
    assert set(by_name) == set(CHAIN)
    for before, after in pairwise(CHAIN):
        assert by_name[after]["dependencyKeys"] == [{"path": [before]}]
    assert all(node["description"] for node in nodes)


def test_the_run_is_there_and_succeeded(webserver):
    runs = ask(webserver, "{ runsOrError { ... on Runs { results { status jobName tags { key value } } } } }")[
        "runsOrError"
    ]["results"]
    assert {run["jobName"] for run in runs} == {"evaluate"}
    assert runs[-1]["status"] == "SUCCESS"
    assert any(
        tag["key"] == "dagster/partition/configuration" and tag["value"].startswith("aurora@1.4@embedded@")
        for tag in runs[-1]["tags"]
    )


def test_each_asset_tells_its_evaluation_its_rows_and_shows_a_table(webserver, finished):
    _, printed = finished
    query = """{ assetOrError(assetKey: {path: ["summaries"]}) { ... on Asset { assetMaterializations(limit: 50) { metadataEntries {
        label ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr } } } } } }"""
    made = ask(webserver, query)["assetOrError"]["assetMaterializations"]
    first = {entry["label"]: entry for entry in made[-1]["metadataEntries"]}
    assert first["evaluation_id"]["text"] == printed["evaluation_id"]
    assert first["dagster/row_count"]["intValue"] == len(printed["summaries"])
    assert "faithfulness" in first["rows"]["mdStr"]


@pytest.mark.parametrize("step", ["summaries", "calibrations"])
def test_summaries_and_calibrations_show_small_charts(webserver, step):
    query = f"""{{ assetOrError(assetKey: {{path: ["{step}"]}}) {{ ... on Asset {{ assetMaterializations(limit: 50) {{ metadataEntries {{
        label ... on MarkdownMetadataEntry {{ mdStr }} }} }} }} }} }}"""
    made = ask(webserver, query)["assetOrError"]["assetMaterializations"]
    shown = {entry["label"]: entry for entry in made[-1]["metadataEntries"]}["charts"]["mdStr"]
    assert shown.count("](data:image/svg+xml;base64,") == 4
    assert len(shown) < 50_000


def test_check_results_are_there_also_when_they_pass(webserver):
    query = """{ assetNodes { assetKey { path } assetChecksOrError { ... on AssetChecks { checks { name description
        executionForLatestMaterialization { status evaluation { success metadataEntries { label } } } } } } } }"""
    checks = {
        check["name"]: check
        for node in ask(webserver, query)["assetNodes"]
        for check in node["assetChecksOrError"].get("checks", [])
    }
    assert set(checks) == CHECKS
    for check in checks.values():
        assert check["description"]
    seen = evaluated(webserver)
    assert set(seen) == CHECKS
    assert all(one["advice"] for one in seen.values())
    # Constructed labels certify no judge, which is all that is wrong with the sample.
    assert {name for name, one in seen.items() if not one["success"]} == {
        "calibration_freshness", "label_provenance", "gate_decision"
    }  # fmt: skip


def test_invalid_grades_a_moved_tag_and_an_uncalibrated_judge_fail_their_checks_and_block_the_gate(
    judged, loopback, run_cli, clean_environment
):
    loopback.control(faults={"off_scale": 0.8})
    items = judged / "datasets" / "helpdesk" / "items.jsonl"
    items.write_text(items.read_text(encoding="utf-8").replace("Marubit", "Marubot", 1), encoding="utf-8")
    done = run_cli("run", "--json", cwd=judged, JUDGE_KEY="sk-ui")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)["gate"]
    assert printed["decision"] == "BLOCKED"
    assert {"invalid", "dataset", "calibration"} <= {
        rule["rule"] for rule in printed["rules"] if rule["verdict"] == "BLOCKED"
    }
    with served(judged, clean_environment) as url:
        seen = evaluated(url)
    said = {
        "invalid_grade_rate": (ITEM, "run --retry-invalid"),
        "golden_items_suite": (ITEM, "under a new tag"),
        "calibration_freshness": ("untested", "label export"),
        "gate_decision": ("BLOCKED", "eval-pipeline report"),
    }
    for name, (rows, advice) in said.items():
        assert seen[name]["success"] is False, name
        assert seen[name]["severity"] == "ERROR", name
        assert re.search(rows, seen[name]["rows"]), seen[name]["rows"]
        assert advice in seen[name]["advice"]
    assert seen["accounting_identity"]["success"] is True


def evaluated(url):
    """The checks of the oldest run by name: success, severity, and metadata by label."""
    runs = ask(url, "{ runsOrError { ... on Runs { results { runId } } } }")["runsOrError"]["results"]
    events = f"""{{ logsForRun(runId: "{runs[-1]["runId"]}") {{ ... on EventConnection {{ events {{
        ... on AssetCheckEvaluationEvent {{ evaluation {{ checkName success severity metadataEntries {{
            label ... on TextMetadataEntry {{ text }} ... on MarkdownMetadataEntry {{ mdStr }} }} }} }} }} }} }} }}"""
    found = [event["evaluation"] for event in ask(url, events)["logsForRun"]["events"] if event]
    return {
        one["checkName"]: {"success": one["success"], "severity": one["severity"]}
        | {entry["label"]: entry.get("text", entry.get("mdStr")) for entry in one["metadataEntries"]}
        for one in found
    }


def test_an_asset_s_body_is_one_statement():
    tree = ast.parse(Path(assets.__file__).read_text(encoding="utf-8"))
    bodies = [node.body for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [len(body) for body in bodies] == [1] * len(CHAIN)
