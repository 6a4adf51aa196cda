"""A night and a backfill at the same time, with a reader on the published database."""

import json
import subprocess
import sys

import duckdb
import pytest

pytestmark = pytest.mark.daemon
WHOLE = "select evaluation_id, count(*) from evaluations join scores using (evaluation_id) group by all"


def test_a_night_and_a_backfill_at_once_both_succeed_and_nothing_is_lost(folder, clean_environment):
    """The two processes share ledger, instance and warehouse; the reader keeps the file open throughout."""
    database = folder.root / "warehouse" / "results.duckdb"
    environment = clean_environment(EVAL_PROJECT=str(folder.root))
    with duckdb.connect(str(database), read_only=True) as reader:
        before = dict(reader.sql(WHOLE).fetchall())
        processes = [
            subprocess.Popen([sys.executable, "-m", "eval_pipeline.cli", *arguments, "--json"], cwd=folder.root, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for arguments in (["run"], ["backfill", "--system", "borealis"])
        ]  # fmt: skip
        (night, night_error), (filled, filled_error) = (process.communicate(timeout=300) for process in processes)
        assert [process.returncode for process in processes] == [0, 0], night_error + filled_error
        assert dict(reader.sql(WHOLE).fetchall()) == before, "the reader keeps what it opened"
    ids = {folder.evaluation_id, json.loads(night)["evaluation_id"], json.loads(filled)[0]["evaluation_id"]}
    with duckdb.connect(str(database), read_only=True) as connection:
        after = dict(connection.sql(WHOLE).fetchall())
    assert set(after) == ids
    assert len(set(after.values())) == 1, "all scores of each"
    assert {path.stem for path in (folder.root / "warehouse" / "reports").glob("*.html")} == ids
