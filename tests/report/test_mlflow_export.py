"""`export --as mlflow` against the real MLflow with a local store: what is read back is what the database says."""

import math
import sys
from dataclasses import replace

import polars as pl
import pytest

from eval_pipeline.errors import ExtraMissing, NotWritable
from eval_pipeline.report import mlflow_export
from eval_pipeline.store.query import query

pytest.importorskip("mlflow")
pytestmark = [
    # MLflow's own, on SQLAlchemy 2.1 and Python 3.11
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning"),
]


def read_back(folder):
    """The runs in a folder's store, and the text of an artifact."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name.startswith("eval-pipeline/")]
    return experiment.name, client.search_runs([experiment.experiment_id]), client


def test_what_mlflow_holds_is_what_the_database_says(finished, run_cli, tmp_path):
    folder, printed = finished
    for _ in range(2):  # the second updates the first
        done = run_cli("export", "--as", "mlflow", "--out", tmp_path / "한글 store", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert printed["evaluation_id"] in done.stdout

    def rows(sql):
        return query(folder / "warehouse" / "results.duckdb", sql).to_dicts()

    (evaluation,) = rows("select * from evaluations")
    summaries = rows("select * from summaries where stratum = 'all'")
    (decision,) = rows("select verdict from gate_decisions where rule = 'decision'")
    name, (run,), client = read_back(tmp_path / "한글 store")
    assert name == "eval-pipeline/helpdesk"
    assert run.info.status == "FINISHED"
    params = (
        "dataset",
        "dataset_tag",
        "dataset_version",
        "system",
        "system_release",
        "judge",
        "judge_model",
        "config_sha256",
    )
    assert run.data.params == {key: evaluation[key] for key in params}
    numbers = {
        f"{row['metric']}.{column}": value
        for row in summaries for column, value in row.items()
        if column in {*mlflow_export.STATISTICS, *mlflow_export.COUNTS} and value is not None
    }  # fmt: skip
    assert run.data.metrics == numbers
    assert all(math.isfinite(value) for value in run.data.metrics.values())
    assert run.data.tags["eval_pipeline.evaluation_id"] == evaluation["evaluation_id"]
    assert run.data.tags["eval_pipeline.decision"] == decision["verdict"]
    kept = {
        one.path: client.download_artifacts(run.info.run_id, one.path) for one in client.list_artifacts(run.info.run_id)
    }
    assert set(kept) == {"report.html", "scores.parquet"}
    stored = rows("select metric, item_id, value from scores order by all")
    assert (
        pl.read_parquet(kept["scores.parquet"]).select("metric", "item_id", "value").sort(pl.all()).to_dicts() == stored
    )


def without_a_mean(view):
    """The view with the numbers of one metric undefined, one of them not even a number."""
    mine = pl.col("metric") == "answer_accuracy"
    undefined = view.summaries.with_columns(
        *(pl.when(mine).then(None).otherwise(pl.col(name)).alias(name) for name in ("mean", "mean_lower_bound")),
        pl.when(mine).then(float("nan")).otherwise(pl.col("cvar10")).alias("cvar10"),
        pl.when(mine).then(pl.lit("no scores")).otherwise(pl.col("mean_reason")).alias("mean_reason"),
    )
    return replace(view, summaries=undefined)


@pytest.mark.parametrize("statistic", ["mean", "mean_lower_bound", "cvar10"])
def test_what_is_undefined_is_a_tag_with_its_reason_and_no_number(bad_night, statistic):
    found = mlflow_export.logged(without_a_mean(bad_night))
    assert f"answer_accuracy.{statistic}" not in found.metrics
    assert f"{statistic}: no scores" in found.tags["answer_accuracy.undefined"]
    assert found.metrics["answer_accuracy.item_count"] == 30


def test_without_mlflow_the_extra_is_named(bad_night, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'eval-pipeline\[mlflow\]'"):
        mlflow_export.log(bad_night, (), str(tmp_path))


def test_a_target_that_cannot_be_written_is_said_without_its_password(bad_night, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(NotWritable, match="file"):
        mlflow_export.log(bad_night, (), str(tmp_path / "file" / "x"))
    for scheme in ("nosuch", "postgresql+nosuchdriver"):
        with pytest.raises(NotWritable) as caught:
            mlflow_export.log(bad_night, (), f"{scheme}://me:s3cret@127.0.0.1/path")
        assert "s3cret" not in str(caught.value)
        assert f"{scheme}://127.0.0.1/path" in str(caught.value)
