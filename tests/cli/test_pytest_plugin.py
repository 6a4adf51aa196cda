"""The pytest plugin in test suites of users: there only when asked for, light until used, one evaluation for all workers."""

import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest

from eval_pipeline.pytest_plugin import RagEvaluation

PLUGIN = ("-p", "eval_pipeline.pytest_plugin")
TWO = """
def test_one(rag_evaluation):
    rag_evaluation.assert_metric("answer_accuracy", at_least=0.0)

def test_two(rag_evaluation):
    rag_evaluation.assert_metric("answer_accuracy", at_least=1.01)
"""


def run(folder, text, clean_environment, *arguments, **variables):
    (folder / "test_rag.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "test_rag.py"]
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_fixture_is_there_only_when_asked_for(tmp_path, clean_environment):
    text = "def test_it(rag_evaluation):\n    pass\n"
    assert "fixture 'rag_evaluation' not found" in run(tmp_path, text, clean_environment).stdout


def test_nothing_heavy_is_loaded_until_the_fixture_is_used(tmp_path, clean_environment):
    text = (
        "import sys\n\n\ndef test_it():\n    heavy = {'dagster', 'polars', 'duckdb', 'openai', 'scipy', 'numpy'}\n"
        "    assert 'eval_pipeline.pytest_plugin' in sys.modules\n    assert not heavy & set(sys.modules)\n"
    )
    done = run(tmp_path, text, clean_environment, *PLUGIN)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "workers", [pytest.param((), marks=pytest.mark.slow), ("-n", "2")], ids=["alone", "two workers"]
)
def test_one_evaluation_serves_every_test(project, clean_environment, run_cli, workers):
    done = run(project, TWO, clean_environment, *PLUGIN, *workers)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "answer_accuracy: lower bound" in done.stdout
    assert "< 1.01" in done.stdout
    counted = run_cli("query", "SELECT count(*) AS n FROM evaluations", "--format", "csv", cwd=project)
    assert counted.stdout.split() == ["n", "1"]


def test_a_session_within_a_worker_of_another_one_takes_over_no_evaluation(project, clean_environment, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "rag_evaluation").write_text("20200101T000000-00000000", encoding="utf-8")
    text = 'def test_it(rag_evaluation):\n    assert not rag_evaluation.evaluation_id.startswith("2020")\n'
    own = ("--basetemp", str(tmp_path / "base" / "own"))
    done = run(project, text, clean_environment, *PLUGIN, *own, PYTEST_XDIST_WORKER="gw0")
    assert done.returncode == 0, done.stdout


def test_what_is_wrong_with_the_project_is_said_without_a_traceback(tmp_path, clean_environment):
    done = run(tmp_path, "def test_it(rag_evaluation):\n    pass\n", clean_environment, *PLUGIN)
    assert done.returncode == 1
    assert "No evaluation.yaml in" in done.stdout
    assert "eval-pipeline init DIR" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "pytest_plugin.py" not in done.stdout + done.stderr


# --- what the assertions say


def seen(*, partial=False, gate=(), **changed):
    summary = {
        "metric": "정확도", "stratum": "all", "mean": 0.9, "mean_lower_bound": 0.85, "mean_reason": None, "cvar10": 0.4,
        "invalid_count": 1, "item_count": 20, "worst_item_ids": ["질문1", "q2"],
    }  # fmt: skip
    evaluation = RagEvaluation.__new__(RagEvaluation)  # without a project behind it
    evaluation.view = SimpleNamespace(
        summaries=pl.DataFrame([summary | changed]),
        evaluation={"is_partial": partial, "partial_reason": "limit"},
        gate=pl.DataFrame(list(gate), schema=["metric", "rule", "verdict", "evidence", "item_ids"], orient="row"),
    )
    return evaluation


def test_a_bound_that_holds_is_silent_and_one_that_does_not_names_number_and_worst_items():
    seen().assert_metric("정확도", at_least=0.85, bottom_decile_at_least=0.4)
    with pytest.raises(AssertionError, match=r"정확도: lower bound 0\.850 < 0\.86 .*1 invalid of 20.*질문1 q2"):
        seen().assert_metric("정확도", at_least=0.86)
    with pytest.raises(AssertionError, match=r"정확도: worst 10 % 0\.400 < 0\.5; worst: 질문1 q2"):
        seen().assert_metric("정확도", at_least=0.5, bottom_decile_at_least=0.5)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mean_lower_bound": None, "mean_reason": "no scores"}, "undefined: no scores"),
        ({"mean_lower_bound": float("nan")}, "lower bound nan"),
        ({"cvar10": None}, "worst 10 % is undefined"),
        ({"partial": True}, "partial: limit"),
    ],
)
def test_what_is_undefined_or_partial_never_passes(changed, said):
    with pytest.raises(AssertionError, match=said):
        seen(**changed).assert_metric("정확도", at_least=0.0, bottom_decile_at_least=0.0)
    if "partial" in changed:
        with pytest.raises(AssertionError, match=said):
            seen(**changed, gate=[("정확도", "regression (pin)", "PASS", "fine", [])]).assert_no_regression("정확도")


def test_a_metric_that_was_not_evaluated_never_passes():
    with pytest.raises(AssertionError, match=r"faithfulness was not evaluated; evaluated: .*정확도"):
        seen().assert_metric("faithfulness", at_least=0.0)


@pytest.mark.parametrize("verdict", ["FAIL", "BLOCKED", "INCONCLUSIVE"])
def test_a_regression_names_its_evidence_and_items(verdict):
    rule = ("정확도", "regression (window)", verdict, "dropped .05", ["질문1"])
    with pytest.raises(AssertionError, match=rf"{verdict} dropped \.05 \(질문1\)"):
        seen(gate=[rule]).assert_no_regression("정확도")
    seen(gate=[(*rule[:2], "NOT_EVALUATED", "no baseline", [])]).assert_no_regression("정확도")
    with pytest.raises(AssertionError, match="the gate did not look at"):
        seen().assert_no_regression("정확도")
