"""The embedded judge: a ChatModel that answers each question with lexical containment, without model or network.

It is a baseline and says so everywhere. It reads the structured `inputs` of a request, never the prompt text, so
nothing written inside a dataset can instruct it. The scoring is in `overlap` and `overlap_support`; this file turns shares into grades.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.llm.overlap import compare, is_noncommittal
from eval_pipeline.llm.overlap_support import relevance, support
from eval_pipeline.llm.overlap_text import sentences

# Part of the judge's identity: rises with every change that can move a grade.
MODEL = "overlap_judge-1"

Texts = Mapping[str, object]
_DEFAULT_GRADES = {
    "answer_accuracy": (0, 2, 4),
    "context_relevance": (0, 1, 2),
    "response_groundedness": (0, 1, 2),
}
_PREMISES = ("premise", "retrieved_contexts", "contexts", "context", "reference", "response", "reference_contexts")


def _text(inputs: Texts, *names: str) -> str:
    """The first of the named inputs that has text; a list of texts is read as one block."""
    for name in names:
        value = inputs.get(name)
        joined = (
            value if isinstance(value, str) else "\n\n".join(map(str, value)) if isinstance(value, list | tuple) else ""
        )
        if joined.strip():
            return joined
    return ""


def _step(share: float, full: float, some: float) -> float:
    return 1.0 if share >= full else 0.5 if share >= some else 0.0


def answer_accuracy(inputs: Texts, view: int) -> float:
    """View 1: is the response contained in the reference? View 2: the reference in the response? 0, .5 or 1.

    A reference that is no prose may list several wordings: a response made of its words is then right in view 2 too.
    """
    match = compare(_text(inputs, "response"), _text(inputs, "reference"), _text(inputs, "user_input"))
    if match.contradiction:
        return 0.0
    if view == 1:
        share = 1.0 if match.recall >= 0.8 else max(match.precision, match.core)
        return _step(share, 0.34, 0.2)
    floor = 1.0 if match.precision >= 0.6 and not match.is_prose else 0.5 if match.precision >= 0.99 else 0.0
    return max(_step(max(match.recall, match.core), 0.66 if match.is_prose else 0.5, 0.2), floor)


def context_relevance(inputs: Texts, view: int) -> float:
    """View 1: the question's words anywhere in the contexts. View 2: in the best single passage."""
    question, contexts = _text(inputs, "user_input"), _text(inputs, "retrieved_contexts", "contexts", "context")
    if view == 1:
        return _step(relevance(question, contexts), 0.6, 0.2)
    passages = [passage for passage in re.split(r"\n\s*\n", contexts) if passage.strip()] or [""]
    return _step(max(relevance(question, passage) for passage in passages), 0.7, 0.5)


def _is_supported(claim: str, premise: str, question: str, view: int) -> bool:
    found = support(claim, premise, question)
    return not found.contradiction and (found.block >= 0.5 if view == 1 else found.window >= 0.6)


def claim_support(inputs: Texts, view: int) -> float:
    """Whether one claim is contained in its premise: anywhere (view 1), within two neighbouring sentences (view 2)."""
    claim, premise = _text(inputs, "claim", "statement"), _text(inputs, *_PREMISES)
    return float(_is_supported(claim, premise, _text(inputs, "user_input"), view))


def response_groundedness(inputs: Texts, view: int) -> float:
    """1 when every sentence of the response is supported by the contexts, .5 when some are; declining claims nothing."""
    claims, contexts = claims_of(_text(inputs, "response")), _text(inputs, "retrieved_contexts", "contexts", "context")
    if not claims:
        return 1.0 if _text(inputs, "response") and contexts else 0.0
    held = [_is_supported(claim, contexts, _text(inputs, "user_input"), view) for claim in claims]
    return 1.0 if all(held) else 0.5 if any(held) else 0.0


def context_use(inputs: Texts, view: int) -> float:
    """Whether one context helps: it holds the reference (or the response), or most of what the question names."""
    context = _text(inputs, "context", "retrieved_contexts", "contexts")
    answer = _text(inputs, "reference", "response")
    question = _text(inputs, "user_input")
    if answer and not is_noncommittal(answer):
        return float(_is_supported(answer, context, question, view))
    return float(relevance(question, context) >= 0.5)


def general_quality(inputs: Texts, view: int) -> float:
    """What can be said of a response without knowing the criteria: agreement, groundedness, or bearing on the question."""
    response = _text(inputs, "response", "answer", "actual_output")
    if not response or (is_noncommittal(response) and not is_noncommittal(_text(inputs, "reference"))):
        return 0.0
    shares = []
    if reference := _text(inputs, "reference"):
        match = compare(response, reference, _text(inputs, "user_input"))
        found = (match.precision + match.recall) / 2
        shares.append(0.0 if match.contradiction else max(found, match.core, match.recall if view == 2 else found))
    if _text(inputs, "retrieved_contexts", "contexts", "context"):
        shares.append(response_groundedness(inputs, view))
    if not shares and (question := _text(inputs, "user_input")):
        shares.append(0.5 + 0.5 * min(1.0, 2 * relevance(question, response)))
    return sum(shares) / len(shares) if shares else 0.5


def preference(inputs: Texts, view: int) -> float:
    """1 when the first response is better, 0 when the second is, .5 when no difference shows; order changes nothing."""
    first, second = (
        general_quality({**inputs, "response": _text(inputs, *names)}, view)
        for names in (("response_a", "first", "response_1"), ("response_b", "second", "response_2", "rival_response"))
    )
    return 0.5 if abs(first - second) < 0.05 else float(first > second)


def claims_of(text: str) -> list[str]:
    """The sentences of a text that state something: no questions, no refusals."""
    kept = [sentence for sentence in sentences(text) if re.search(r"\w", sentence)]
    return [s for s in kept if not s.rstrip("\"'”’) ").endswith(("?", "？")) and not is_noncommittal(s)]


_FAMILIES: dict[str, Callable[[Texts, int], float]] = {
    "answer_accuracy": answer_accuracy,
    "context_relevance": context_relevance,
    "response_groundedness": response_groundedness,
    "faithfulness": claim_support,
    "context_precision": context_use,
    "pairwise_preference": preference,
    "pairwise": preference,
}


def _scorer(family: str, inputs: Texts) -> Callable[[Texts, int], float]:
    """The scorer of a template family; for an unknown one, what the inputs at hand allow."""
    if family in _FAMILIES:
        return _FAMILIES[family]
    if family.startswith("context_precision"):
        return context_use
    names = {name for name, value in inputs.items() if value}
    if names & {"response_a", "response_b", "response_2", "second", "rival_response"}:
        return preference
    if names & {"claim", "statement"}:
        return claim_support
    if "context" in names and names & {"reference", "response"} and "criteria" not in names:
        return context_use
    if names & {"response", "answer", "actual_output"}:
        return general_quality
    return context_relevance


def _pick(grades: Sequence[object], share: float) -> object:
    """The allowed grade nearest to a share of the scale; for A/B grades the first stands for A, a middle one for a tie."""
    if {"A", "B"} <= set(grades):
        ties = [grade for grade in grades if grade not in ("A", "B")]
        return "A" if share > 0.5 else "B" if share < 0.5 or not ties else ties[0]
    numbers = [grade for grade in grades if isinstance(grade, int | float)]
    if len(numbers) == len(grades):
        wanted = min(numbers) + share * (max(numbers) - min(numbers))
        return min(numbers, key=lambda grade: (abs(grade - wanted), grade))
    return grades[min(len(grades) - 1, int(share * (len(grades) - 1) + 0.5))]


def _grade_field(schema: Mapping[str, object] | None) -> str:
    properties = (schema or {}).get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    return next((name for name in ("grade", "verdict", "score", "rating") if name in names), "grade")


def _family(template_id: str) -> tuple[str, int]:
    """The family and the view of a template id: "answer_accuracy.2" is view 2 of "answer_accuracy"."""
    family, _, last = template_id.rpartition(".")
    return (family, 2 if last == "2" else 1) if family and last.isdigit() else (template_id, 1)


def reply_text(
    template_id: str, inputs: Texts, grades: Sequence[object] = (), schema: Mapping[str, object] | None = None
) -> str:
    """The judge's reply to one question, as JSON.

    Args:
        template_id: family and view, as in "answer_accuracy.2"; unknown families are judged by their inputs.
        inputs: the structured texts behind the prompt, by variable name.
        grades: the allowed grades, ascending. In a comparison the highest says that the first response is better.
        schema: of the reply; says whether claims, a question or a grade is wanted where the family does not.
    """
    family, view = _family(template_id)
    properties = (schema or {}).get("properties")
    wanted = set(properties) if isinstance(properties, Mapping) else set()
    if family.split(".")[0] in ("claims", "decomposition") or ("claims" in wanted and not grades):
        return json.dumps({"claims": claims_of(_text(inputs, "text", "response", "reference"))}, ensure_ascii=False)
    if not grades and ("question" in wanted or "question" in family or family.startswith("answer_relevancy")):
        response = _text(inputs, "response", "answer")
        stated = claims_of(response)
        reply = {"question": stated[0] if stated else response, "is_noncommittal": is_noncommittal(response)}
        return json.dumps(reply, ensure_ascii=False)
    allowed = tuple(grades) or _DEFAULT_GRADES.get(family, (0, 1))
    grade = _pick(allowed, _scorer(family, inputs)(inputs, view))
    return json.dumps({_grade_field(schema): grade}, ensure_ascii=False)


class OverlapJudge:
    """The embedded default judge: deterministic, free, offline, and a baseline only."""

    @property
    def identity(self) -> ModelIdentity:
        """Who answers; the version in the name moves with the scoring."""
        return ModelIdentity(endpoint="embedded", model=MODEL)

    async def reply(self, request: ChatRequest) -> ChatReply:
        """Answers from `inputs` alone; a re-ask or another sample gets the same reply."""
        started = time.perf_counter()
        text = reply_text(request.template_id, request.inputs, request.grades, request.schema)
        return ChatReply(
            text=text,
            model=MODEL,
            input_tokens=0,
            cached_input_tokens=0,
            output_tokens=0,
            cost_usd=0.0,
            latency_seconds=time.perf_counter() - started,
        )
