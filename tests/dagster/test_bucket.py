"""The tables in a bucket, the rest on a local disk: whole evaluations over an fsspec URL."""

import json
import subprocess
import sys

import duckdb
import pytest

pytestmark = pytest.mark.daemon
# One process: the memory file system, which stands for the bucket, lives no longer.
TWICE = """
import json, os, pathlib
import fsspec
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.launch import Target, evaluate
project = Project.find(pathlib.Path.cwd(), dict(os.environ))
target = Target("helpdesk", "latest", "aurora", "embedded")
ids = [evaluate(project, target, Options(limit=10)) for _ in range(2)]
stored = fsspec.filesystem("memory").find("/bucket/tables")
print(json.dumps({"ids": ids, "stored": stored}))
"""


def test_evaluations_keep_their_tables_in_a_bucket_and_publish_locally(project, clean_environment):
    environment = clean_environment(EVAL_WAREHOUSE="memory://bucket")
    done = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    first, second = found["ids"]
    assert {name.split("/")[3] for name in found["stored"]} >= {"golden_items", "responses", "verdicts", "scores", "evaluations"}  # fmt: skip
    local = project / "warehouse"
    assert not (local / "tables").exists()
    with duckdb.connect(str(local / "results.duckdb"), read_only=True) as connection:
        rows = connection.sql("select evaluation_id, call_count from evaluations order by started_at").fetchall()
    assert [name for name, _ in rows] == [first, second]
    assert rows[0][1] > 0 == rows[1][1]
    assert (local / "reports" / f"{second}.html").is_file()
