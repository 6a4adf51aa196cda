"""A real `dagster-daemon` and `dagster-webserver` on one project, started and stopped as an operator does."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

RUNS = "{ runsOrError(limit: 200) { ... on Runs { results { runId status jobName tags { key value } } } } }"
PATIENCE_SECONDS = 300


class Deployment:
    """The two processes, and what their GraphQL API tells."""

    def __init__(self, project, environment):
        self.project, self.environment = project, environment
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.processes = {}

    def start(self, name, *arguments):
        command = [str(Path(sys.executable).with_name(name)), *arguments, "-w", "workspace.yaml"]
        log = (self.project / f"{name}.log").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.project, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )

    def start_daemon(self):
        self.start("dagster-daemon", "run")

    def start_webserver(self):
        self.start("dagster-webserver", "-h", "127.0.0.1", "-p", str(self.port))
        self.wait(self.answers, "the webserver")

    def stop(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)

    def close(self):
        for name in list(self.processes):
            self.stop(name)

    def answers(self):
        try:
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/server_info", timeout=2).read())
        except OSError:
            return False

    def ask(self, query):
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            found = json.loads(reply.read())
        assert "errors" not in found, found
        return found["data"]

    def runs(self, **tags):
        """Runs with these tags (`_` for `/`), newest first, each with its tags as a mapping."""
        rows = self.ask(RUNS)["runsOrError"]["results"]
        found = [{**row, "tags": {tag["key"]: tag["value"] for tag in row["tags"]}} for row in rows]
        wanted = {f"dagster/{name}": value for name, value in tags.items()}
        return [row for row in found if wanted.items() <= row["tags"].items()]

    def wait(self, condition, what):
        """The first true value of a condition."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if found := condition():
                return found
            assert all(process.poll() is None for process in self.processes.values()), f"ended while waiting for {what}"
            time.sleep(1)
        logs = "\n".join(
            (self.project / f"{name}.log").read_text("utf-8", "replace")[-3000:] for name in self.processes
        )
        raise AssertionError(f"no {what} in {PATIENCE_SECONDS} s\n{logs}\n{self.told()}")

    def succeeded(self, **tags):
        """Runs with these tags when there are some and all of them went through."""
        found = self.runs(**tags)
        return found if found and all(run["status"] == "SUCCESS" for run in found) else []

    def told(self):
        """Every run with how it stands, and what its failed steps said."""
        failed = {run["runId"] for run in self.runs() if run["status"] == "FAILURE"}
        said = [text[-1500:] for run_id in failed for text in self.messages(run_id) if "fail" in text.lower()]
        return "\n".join([*(f"{run['runId']} {run['status']} {run['tags']}" for run in self.runs()), *said])

    def messages(self, run_id):
        query = f"""{{ logsForRun(runId: "{run_id}") {{ ... on EventConnection {{ events {{ ... on MessageEvent {{ message }}
            ... on ExecutionStepFailureEvent {{ error {{ message causes {{ message }} }} }} }} }} }} }}"""
        events = self.ask(query)["logsForRun"]["events"]
        return [f"{event.get('message') or ''} {event.get('error') or ''}" for event in events]

    def kill_run(self, run_id):
        """Kills the process of a run with -9, by the pid its events tell."""
        messages = self.messages(run_id)
        pid = next(int(found[1]) for text in messages if (found := re.search(r"\(pid: (\d+)\)", text)))
        os.kill(pid, signal.SIGKILL)
