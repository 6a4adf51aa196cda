"""A retriever made worse on purpose, and the gate that turns red, with the alert on the worst tenth.

python examples/worse_retriever.py

The same two assertions belong in a pytest file: `pytest -p eval_pipeline.pytest_plugin` gives the `rag_evaluation` fixture.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.cli.starting import write_project
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.launch import Target, evaluate
from eval_pipeline.pytest_plugin import RagEvaluation
from eval_pipeline.vocabulary import Language

PROJECT = Path(__file__).with_name("retriever")
METRIC = "passages_found"
FLOOR, WORST_TENTH = 0.80, 0.10


@dataclass(frozen=True, slots=True)
class Night:
    """One release under the gate.

    Attributes:
        rules: verdict and evidence by rule; the rule `decision` is the whole.
        alert: what the assertion on mean and worst tenth said; null when it held.
    """

    release: str
    mean: float
    cvar10: float
    decision: str
    rules: dict[str, tuple[str, str]]
    alert: str | None


def night(folder: Path) -> Night:
    """Evaluates the retriever of a project folder as it is configured now."""
    project = Project.find(folder, {**os.environ, "EVAL_PROJECT": str(folder)})
    found = RagEvaluation(project, evaluate(project, Target("helpdesk", "latest", "handbook", "embedded"), Options()))
    summary = found.summary(METRIC)
    rules = {row["rule"]: (row["verdict"], row["evidence"]) for row in found.view.gate.to_dicts()}
    try:
        found.assert_metric(METRIC, at_least=FLOOR, bottom_decile_at_least=WORST_TENTH)
        alert = None
    except AssertionError as error:
        alert = str(error)
    release = found.view.evaluation["system_release"]
    return Night(release, summary["mean"], summary["cvar10"], rules["decision"][0], rules, alert)


def main() -> list[Night]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
        write_project(folder, Language.EN)  # the dataset, and what Dagster needs
        nights = [night(folder)]
        path = folder / "evaluation.yaml"
        text = path.read_text(encoding="utf-8").replace("search:answer", "search:answer_from_stale_index")
        path.write_text(text.replace('release: "1"', 'release: "2"'), encoding="utf-8")
        nights.append(night(folder))
    for one in nights:
        print(f"release {one.release}: {one.decision:<14} mean {one.mean:.3f}, worst tenth {one.cvar10:.3f}")
        for rule, (verdict, evidence) in one.rules.items():
            if rule != "decision":
                print(f"    {verdict:<14} {rule}: {evidence}")
        print(f"    alert: {one.alert or 'none'}\n")
    return nights


if __name__ == "__main__":
    main()
