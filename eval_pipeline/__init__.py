"""Evaluate RAG and LLM systems with LLM judges, and say how far the numbers can be trusted.

The public names, imported when first used:

    from eval_pipeline import AnswerAccuracy, OpenAIChat
    result = await AnswerAccuracy(judge=OpenAIChat("gpt-4o-mini-2024-07-18")).ascore(user_input=..., response=..., reference=...)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eval_pipeline.api import (
        AnswerAccuracy,
        AnswerCorrectness,
        AnswerRelevancy,
        ContextPrecision,
        ContextRecall,
        ContextRelevance,
        ExactMatch,
        FactualCorrectness,
        Faithfulness,
        GEval,
        MetricResult,
        PairwisePreference,
        ResponseGroundedness,
        RubricScore,
        TokenF1,
    )
    from eval_pipeline.chat import ChatModel, ChatReply, ChatRequest, EmbeddingModel
    from eval_pipeline.errors import EvalPipelineError
    from eval_pipeline.llm.openai_chat import OpenAIChat
    from eval_pipeline.llm.overlap_judge import OverlapJudge
    from eval_pipeline.llm.scripted_chat import ScriptedChat

_HOMES = {
    "eval_pipeline.api": (
        "AnswerAccuracy", "AnswerCorrectness", "AnswerRelevancy", "ContextPrecision", "ContextRecall", "ContextRelevance",
        "ExactMatch", "FactualCorrectness", "Faithfulness", "GEval", "MetricResult", "PairwisePreference",
        "ResponseGroundedness", "RubricScore", "TokenF1",
    ),
    "eval_pipeline.chat": ("ChatModel", "ChatReply", "ChatRequest", "EmbeddingModel"),
    "eval_pipeline.errors": ("EvalPipelineError",),
    "eval_pipeline.llm.openai_chat": ("OpenAIChat",),
    "eval_pipeline.llm.overlap_judge": ("OverlapJudge",),
    "eval_pipeline.llm.scripted_chat": ("ScriptedChat",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnswerAccuracy", "AnswerCorrectness", "AnswerRelevancy", "ChatModel", "ChatReply", "ChatRequest", "ContextPrecision",
    "ContextRecall", "ContextRelevance", "EmbeddingModel", "EvalPipelineError", "ExactMatch", "FactualCorrectness",
    "Faithfulness", "GEval", "MetricResult", "OpenAIChat", "OverlapJudge", "PairwisePreference", "ResponseGroundedness",
    "RubricScore", "ScriptedChat", "TokenF1",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eval_pipeline' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
