"""Which judge may judge: never the model inside the system, never an alias that moves without saying so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

from eval_pipeline.errors import FloatingJudge, SelfEvaluation
from eval_pipeline.llm.prices import retires_at

RETIREMENT_NOTICE_DAYS = 90

_PREFIX = re.compile(r"^(?:[\w.-]+/)*")
_FINE_TUNE = re.compile(r"^ft:([^:]+)(?::.*)?$")
_DATE = re.compile(r"[-@.]?(?:20\d{2}-?\d{2}-?\d{2}|\d{4}|-00\d|-\d{2}-\d{2})(?:-v\d+)?(?::\d+)?$")
_FLOATING_SUFFIX = re.compile(r"[-:@](?:latest|preview|default|current)$")
_FAMILIES = ("gpt", "o1", "o3", "o4", "claude", "gemini", "gemma", "llama", "mistral", "mixtral", "qwen", "exaone", "solar",
             "deepseek", "phi", "command", "hyperclova", "kanana", "midm", "grok", "nova", "glm", "kimi")  # fmt: skip
_HOSTED = re.compile(r"^(?:gpt-|chatgpt-|o\d|claude-|gemini-)")
_DATED = re.compile(r"(?:20\d{2}-?\d{2}-?\d{2}|-\d{4}$|-00\d$|@\d{8}$|-\d{2}-\d{2}$)")


def canonical_model(name: str) -> str:
    """The model behind a name: provider prefix, fine-tune wrapper, date and alias suffix taken off, lower case."""
    bare = _PREFIX.sub("", name.strip().lower(), count=1)
    tuned = _FINE_TUNE.match(bare)
    bare = tuned.group(1) if tuned else bare
    for provider in ("openai.", "anthropic.", "meta.", "google.", "us.anthropic.", "models-"):
        bare = bare.removeprefix(provider)
    return _DATE.sub("", _FLOATING_SUFFIX.sub("", bare)).removesuffix("-preview").rstrip("-.:@")


def family(name: str) -> str | None:
    """The model family of a name, or null when it is not a known one."""
    bare = canonical_model(name).removeprefix("chat")
    return next((known for known in _FAMILIES if bare.startswith(known)), None)


def is_floating(model: str) -> bool:
    """Whether a name is an alias that its provider moves: `*-latest`, or a hosted family's name without a date."""
    bare = _PREFIX.sub("", model.strip().lower(), count=1)
    if _FLOATING_SUFFIX.search(bare):
        return True
    return bool(_HOSTED.match(bare)) and not _DATED.search(bare)


def admit(
    judge: str,
    judge_model: str,
    system: str,
    system_models: Sequence[str],
    *,
    allow_floating: bool,
    today: date | None = None,
) -> list[tuple[str, str]]:
    """Remarks, in English and Korean, about a judge that may judge this system.

    Raises:
        SelfEvaluation: the judge is a model inside the system.
        FloatingJudge: its name is an alias that moves, and that was not allowed.
    """
    mine = canonical_model(judge_model)
    for model in system_models:
        if canonical_model(model) == mine:
            raise SelfEvaluation(judge=judge, judge_model=judge_model, system=system)
    remarks = []
    if is_floating(judge_model):
        if not allow_floating:
            raise FloatingJudge(judge=judge, model=judge_model)
        remarks.append(
            (
                f"unpinned: {judge} names {judge_model}, an alias that moves",
                f"고정되지 않음: {judge}의 {judge_model}은(는) 움직이는 별칭입니다",
            )
        )
    if not system_models:
        remarks.append(
            (
                f"unknown: system {system} does not say which models are inside; self-evaluation cannot be ruled out",
                f"알 수 없음: 시스템 {system}이(가) 안에 든 모델을 밝히지 않아 자기 평가를 배제할 수 없습니다",
            )
        )
    same = family(judge_model)
    if same and any(family(model) == same for model in system_models):
        remarks.append(
            (
                f"family: {judge} and system {system} are of one model family ({same})",
                f"계열: {judge}와(과) 시스템 {system}은(는) 같은 모델 계열입니다({same})",
            )
        )
    retirement = retires_at(judge_model)
    if retirement is not None:
        days = (retirement - (today or datetime.now(UTC).date())).days
        if days <= RETIREMENT_NOTICE_DAYS:
            word, ko = ("retires", "종료됩니다") if days >= 0 else ("was to retire", "종료 예정이었습니다")
            remarks.append(
                (
                    f"retirement: {judge_model} {word} on {retirement}; calibrate its successor before that",
                    f"종료: {judge_model}은(는) {retirement}에 {ko}. 그 전에 후속 모델을 보정하세요",
                )
            )
    return remarks
