"""Evaluation steps for a G-Eval that has criteria only: asked for once, printed, and pinned by the person who pastes them."""

from __future__ import annotations

import yaml

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatModel
from eval_pipeline.config import CONFIG_NAME
from eval_pipeline.errors import JudgeMisconfigured, UnknownName
from eval_pipeline.evaluation.judges import open_bench
from eval_pipeline.evaluation.project import Project
from eval_pipeline.metrics import g_eval
from eval_pipeline.metrics.declaration import Metric, Question
from eval_pipeline.vocabulary import Expects, Language, Outcome

TEMPLATE_ID = "g_eval_steps"


async def steps_yaml(project: Project, metric: str, judge: str, language: Language) -> str:
    """The lines to paste under the metric in evaluation.yaml. Through the ledger: asked again, the answer is the same.

    Raises:
        UnknownName: no such metric, or it is no G-Eval.
        JudgeMisconfigured: the judge writes no text, or gave no steps.
        Stopped: the provider refuses.
    """
    declared = project.metrics()
    of_kind = {name for name, one in declared.items() if one.template_ids == g_eval.TEMPLATES}
    if metric not in of_kind:
        raise UnknownName(kind="G-Eval metric", name=metric, known=of_kind)
    if not project.config.judges[judge].has_endpoint:
        raise JudgeMisconfigured(
            judge=judge, reason="it writes no text of its own; name a judge with an endpoint by --judge"
        )
    async with open_bench(project, (judge,)) as bench:
        steps = await ask_for_steps(bench.judges[judge], declared[metric], judge, language)
    lines = yaml.safe_dump({"steps": list(steps)}, allow_unicode=True, width=200)
    return f"# {CONFIG_NAME}, metrics.{metric}\n{lines}"


async def ask_for_steps(model: ChatModel, metric: Metric, judge: str, language: Language) -> tuple[str, ...]:
    """The steps that a model makes of a G-Eval's criteria.

    Raises:
        JudgeMisconfigured: it gave none.
        Stopped: the provider refuses.
    """
    settings = {**metric.settings, "needs": ", ".join(metric.needs)}
    asker = Asker(model)
    found = (await asker.ask(Question(TEMPLATE_ID, {}, expects=Expects.STEPS, settings=settings), language)).verdict
    if asker.stopped is not None:
        raise asker.stopped
    if found.outcome != Outcome.GRADED or not found.texts:
        raise JudgeMisconfigured(judge=judge, reason=f"it gave no evaluation steps ({found.outcome})")
    return found.texts
