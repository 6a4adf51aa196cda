"""Adding a metric is one file plus its prompts."""

import polars as pl

from eval_pipeline.metrics import available, declare
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.vocabulary import ScoreStatus

METRIC = '''
"""Politeness: is the response polite?"""
from eval_pipeline.metrics.combination import dual
from eval_pipeline.metrics.declaration import Metric, Question
from eval_pipeline.vocabulary import Language

TEMPLATES = ("politeness.1", "politeness.2")


def declare() -> Metric:
    return Metric(
        name="politeness", version=1, summary={Language.EN: "Is it polite?", Language.KO: "공손한가?"}, needs=("response",),
        template_ids=TEMPLATES, label_scale=(0, 1, 2),
        questions=lambda sample: [Question(t, {"response": sample.response or ""}, (0, 1, 2)) for t in TEMPLATES],
        score=lambda sample, verdicts: dual(verdicts, TEMPLATES),
    )
'''


def add_metric(folder):
    (folder / "prompts").mkdir(parents=True)
    (folder / "politeness.py").write_text(METRIC, encoding="utf-8")
    for number in (1, 2):
        home = folder / "prompts" / f"politeness.{number}"
        home.mkdir()
        for language in ("en", "ko"):
            text = f"system: Judge {number}.\nuser: |\n  {{{{ response }}}}\n"
            (home / f"v1.{language}.yaml").write_text(text, encoding="utf-8")


def test_a_file_in_a_folder_is_found_and_keeps_the_contracts(tmp_path):
    add_metric(tmp_path / "metrics")
    assert "politeness" in available([tmp_path / "metrics"])
    metric = declare("politeness", metric_folders=[tmp_path / "metrics"])
    assert screen(metric, Sample()).status == ScoreStatus.NOT_APPLICABLE
    assert screen(metric, Sample(response=" ")).value == 0.0
    assert metric.score(Sample(response="x"), []).status == ScoreStatus.INVALID


def test_a_configured_one_runs_through_the_whole_chain(project, run_cli):
    add_metric(project / "my_metrics")
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "metrics:\n  answer_accuracy: {}",
        "metric_folders: [my_metrics]\nmetrics:\n  politeness: {gate: false}\n  answer_accuracy: {}",
    )
    path.write_text(text, encoding="utf-8")
    done = run_cli("run", "--metric", "politeness", "--limit", "8", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "politeness" in done.stdout
    shown = pl.read_json(
        run_cli(
            "query",
            "select status, count(*) as n from scores where metric = 'politeness' group by 1",
            "--format",
            "json",
            cwd=project,
        ).stdout.encode()
    )
    assert shown["n"].sum() == 8


def test_nothing_was_registered_in_the_package(tmp_path):
    assert "politeness" not in available()
