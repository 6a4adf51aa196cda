"""Two nights in a row: what changes silently between them is seen, though nothing that was answered is asked again."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

KEY = {"JUDGE_KEY": "sk-recognisable-0123456789"}
METRICS = ("answer_accuracy", "context_relevance", "response_groundedness")
FROZEN_CALLS = 60 * 2 * len(METRICS)  # 60 items, two templates each


def night(run_cli, folder, *arguments):
    done = run_cli("run", "--gate", "nightly", "--json", *arguments, cwd=folder, **KEY)
    assert done.returncode in {0, 1, 3, 5}, done.stderr
    return json.loads(done.stdout)


def canaries(printed):
    return {rule["metric"]: rule for rule in printed["gate"]["rules"] if rule["rule"] == "canary"}


def test_a_judge_that_changes_under_its_name_is_caught_although_every_question_is_in_the_ledger(
    judged, loopback, run_cli
):
    predicted = json.loads(run_cli("run", "--dry-run", "--gate", "nightly", "--json", cwd=judged, **KEY).stdout)
    first = night(run_cli, judged)
    assert sum(row["calls"] for row in predicted) == loopback.counters()["requests"]
    assert {rule["verdict"] for rule in canaries(first).values()} == {"PASS"}

    loopback.control(salt="other weights")
    second = night(run_cli, judged)
    assert loopback.counters()["requests"] == FROZEN_CALLS
    assert second["gate"]["decision"] == "BLOCKED"
    for rule in canaries(second).values():
        assert rule["verdict"] == "BLOCKED"
        assert "changed under the same name" in rule["evidence"]
        assert len(rule["item_ids"]) > 20
    means = [{row["metric"]: row["mean"] for row in one["summaries"] if row["stratum"] == "all"}
             for one in (first, second)]  # fmt: skip
    assert means[0] == means[1]  # from the ledger: the scores alone show nothing


@pytest.mark.slow
def test_an_unchanged_judge_stays_unmoved_and_limits_bind_the_canary(judged, loopback, run_cli):
    night(run_cli, judged)
    loopback.control()
    stopped = night(run_cli, judged, "--max-calls", "100")
    assert loopback.counters()["requests"] == 100
    assert stopped["is_partial"] is True
    resumed = night(run_cli, judged, "--resume", "--max-calls", "1000")
    assert loopback.counters()["requests"] == FROZEN_CALLS
    assert resumed["evaluation_id"] == stopped["evaluation_id"]
    assert {rule["verdict"] for rule in canaries(resumed).values()} == {"PASS"}


@pytest.fixture
def live_system():
    """A system over HTTP whose index can be broken; its URL and the switch."""
    broken = threading.Event()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = "It is written in another manual." if broken.is_set() else f"On this question: {asked['question']}"
            body = json.dumps({"answer": text, "sources": [text]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/chat", broken
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_index_change_behind_a_live_system_shows_in_the_next_night_s_scores(project, live_system, run_cli):
    url, broken = live_system
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace("default_system: aurora", "default_system: live").replace(
        "systems:\n", f"""systems:
  live:
    source: http
    release: "1"
    responses: refresh
    request: {{url: "{url}", json: {{question: "{{{{ user_input }}}}"}}}}
    response: {{response: $.answer, retrieved_contexts: "$.sources[*]"}}
""", 1)  # fmt: skip
    path.write_text(text, encoding="utf-8")
    first = night(run_cli, project)
    broken.set()
    second = night(run_cli, project)
    before, after = (
        {row["metric"]: row["mean"]["value"] for row in one["summaries"] if row["stratum"] == "all"}
        for one in (first, second)
    )
    assert before["response_groundedness"] == after["response_groundedness"] == 1.0  # it says what its contexts say
    assert after["context_relevance"] < before["context_relevance"] - 0.3
