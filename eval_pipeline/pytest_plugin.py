"""A pytest plugin that gates: `pytest -p eval_pipeline.pytest_plugin`. Loads nothing heavy until `rag_evaluation` is used.

def test_rag(rag_evaluation):
    rag_evaluation.assert_metric("faithfulness", at_least=0.85, bottom_decile_at_least=0.5)
    rag_evaluation.assert_no_regression("answer_accuracy")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from eval_pipeline.evaluation.project import Project


class RagEvaluation:
    """One evaluation with assertions. An empty, partial or undefined one never passes."""

    def __init__(self, project: Project, evaluation_id: str) -> None:
        from eval_pipeline.evaluation import reading

        self.project = project
        self.view = reading.view(project, evaluation_id)
        self.evaluation_id = evaluation_id

    def summary(self, metric: str) -> dict[str, Any]:
        """The metric's summary over all strata.

        Raises:
            AssertionError: the metric was not evaluated, or the evaluation is partial.
        """
        rows = [row for row in self.view.summaries.to_dicts() if row["metric"] == metric and row["stratum"] == "all"]
        assert rows, f"{metric} was not evaluated; evaluated: {sorted(set(self.view.summaries['metric']))}"
        assert not self.view.evaluation["is_partial"], (
            f"the evaluation is partial: {self.view.evaluation['partial_reason']}"
        )
        return rows[0]

    def assert_metric(self, metric: str, *, at_least: float, bottom_decile_at_least: float | None = None) -> None:
        """The lower bound of the mean, missing grades counted as the worst, and the mean of the worst 10 %, hold.

        Raises:
            AssertionError: they do not, or are undefined; the worst items are named.
        """
        row = self.summary(metric)
        worst = " ".join(row["worst_item_ids"][:10])
        assert row["mean_lower_bound"] is not None, f"{metric} is undefined: {row['mean_reason']}"
        assert row["mean_lower_bound"] >= at_least, (
            f"{metric}: lower bound {row['mean_lower_bound']:.3f} < {at_least} "
            f"(mean {row['mean']:.3f}, {row['invalid_count']} invalid of {row['item_count']}); worst: {worst}"
        )
        if bottom_decile_at_least is not None:
            assert row["cvar10"] is not None, f"{metric}: the worst 10 % is undefined"
            assert row["cvar10"] >= bottom_decile_at_least, (
                f"{metric}: worst 10 % {row['cvar10']:.3f} < {bottom_decile_at_least}; worst: {worst}"
            )

    def assert_no_regression(self, metric: str) -> None:
        """No regression rule of the gate fails or blocks on this metric; without an earlier evaluation there is none to find.

        Raises:
            AssertionError: one does; its evidence and the newly failed items are named.
        """
        self.summary(metric)
        rows = [
            row for row in self.view.gate.to_dicts() if row["metric"] == metric and row["rule"].startswith("regression")
        ]
        assert rows, f"the gate did not look at {metric}; is it `gate: false`?"
        bad = [row for row in rows if row["verdict"] in {"FAIL", "BLOCKED", "INCONCLUSIVE"}]
        assert not bad, "; ".join(
            f"{row['verdict']} {row['evidence']} ({' '.join(row['item_ids'][:10])})" for row in bad
        )


@pytest.fixture(scope="session")
def rag_evaluation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RagEvaluation:
    """The configured run of the project at hand; what was asked before costs nothing.

    The workers of pytest-xdist share one: the first evaluates, the others wait for it.
    """
    from eval_pipeline.errors import EvalPipelineError

    try:
        return _evaluated(request.config, tmp_path_factory)
    except EvalPipelineError as error:
        pytest.fail(str(error), pytrace=False)


def _evaluated(config: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> RagEvaluation:
    from filelock import FileLock

    from eval_pipeline.evaluation.project import Project

    project = Project.find(Path.cwd(), dict(os.environ))
    # Told by xdist to its own workers; the environment would also tell a pytest that one of them started.
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        return RagEvaluation(project, _evaluate(project))
    shared = tmp_path_factory.getbasetemp().parent / f"rag_evaluation-{worker['testrunuid']}"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            shared.write_text(_evaluate(project), encoding="utf-8")
    return RagEvaluation(project, shared.read_text(encoding="utf-8"))


def _evaluate(project: Project) -> str:
    from eval_pipeline.evaluation.steps import Options
    from eval_pipeline.launch import Target, evaluate

    config = project.config
    dataset = config.dataset_name()
    target = Target(dataset, config.datasets[dataset].tag, config.system_name(), config.judge_name())
    return evaluate(project, target, Options())
