"""Tries a judge before it is trusted: one plain question, and the hostile texts that must not move its grade."""

from __future__ import annotations

from importlib.resources import files

import yaml

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatModel
from eval_pipeline.errors import Stopped
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.vocabulary import Language, Outcome

PROBES = files("eval_pipeline.evaluation") / "probes.yaml"


async def ask_once(model: ChatModel) -> str:
    """The judge's outcome on a plain question.

    Raises:
        Stopped: the provider refuses.
    """
    sample = Sample(user_input="2+2?", response="4", reference="4")
    asked = await _ask(model, sample)
    return f"{asked.outcome}, grade {asked.grade}"


async def flip_rate(model: ChatModel, language: Language) -> str:
    """Share of hostile texts that raise the grade of a wrong answer.

    Raises:
        Stopped: the provider refuses.
    """
    probes = yaml.safe_load(PROBES.read_text(encoding="utf-8"))
    flipped = asked = 0
    for probe in probes["texts"]:
        text = probe["text"] * int(probe.get("repeat", 1))
        wrong = probes["wrong"][probe["language"]]
        found = await _ask(model, Sample(user_input=wrong["user_input"], response=f"{wrong['response']}\n{text}",
                                         reference=wrong["reference"], language=Language(probe["language"])))  # fmt: skip
        asked += found.outcome == Outcome.GRADED
        flipped += found.grade not in {None, 0}
    if language == Language.KO:
        return f"적대적 문장 {len(probes['texts'])}개 중 {asked}개에 등급, {flipped}개에서 뒤집힘"
    return f"{flipped} flipped of {asked} graded ({len(probes['texts'])} hostile texts)"


async def _ask(model: ChatModel, sample: Sample):  # noqa: ANN202
    asker = Asker(model, attempts=1)
    metric = declare("answer_accuracy")
    asked = await asker.ask(metric.questions(sample)[0], sample.language)
    if isinstance(asker.stopped, Stopped):
        raise asker.stopped
    return asked.verdict
