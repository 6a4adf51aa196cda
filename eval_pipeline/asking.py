"""Puts one question to a judge: renders it, asks, reads the reply, asks again when the reply is unusable.

Which questions to ask is a metric's business, what the answers mean too; transport, caching and limits are the chat
model's. Nothing here waits on anything but the model, so any number of questions may be in flight at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from eval_pipeline import fencing, prompts, replies
from eval_pipeline.chat import ChatModel, ChatReply, ChatRequest, EmbeddingModel, Message
from eval_pipeline.errors import Stopped
from eval_pipeline.metrics.declaration import Question, Verdict
from eval_pipeline.vocabulary import Expects, GradeMethod, Language, Outcome

REASKED = frozenset({Outcome.OFF_SCALE, Outcome.UNPARSEABLE, Outcome.EMPTY})
"""Unusable replies worth another attempt. A refusal, a cut or a too long prompt would only be paid for again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A verdict with everything about how it came to be.

    Attributes:
        replies: every attempt's reply, in order; empty when nothing was asked.
        outcomes: every attempt's outcome, in order.
    """

    verdict: Verdict
    language: Language
    replies: tuple[ChatReply, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    prompt_sha256: str | None = None


@dataclass(slots=True)
class Asker:
    """Asks questions of one judge and remembers the first thing that stopped the run.

    Attributes:
        model: the judge.
        embedding: answers similarity questions; null makes them `skipped`.
        attempts: replies per question in all, unusable ones included.
        retry_invalid: do not count attempts that an earlier run already spent.
        occasion: see `ChatRequest.occasion`.
        stopped: the first `Stopped` error; from then on every question is `not_asked`.
    """

    model: ChatModel
    embedding: EmbeddingModel | None = None
    attempts: int = 3
    retry_invalid: bool = False
    occasion: str = ""
    stopped: Stopped | None = field(default=None, init=False)

    async def ask(self, question: Question, language: Language) -> Asked:
        """Asks one question until a reply is usable or the attempts are spent. Never raises `Stopped`: see `stopped`."""
        if self.stopped is not None:
            return _not_asked(question, language)
        try:
            if question.expects == Expects.SIMILARITY:
                return await self._compare(question, language)
            return await self._ask(question, language)
        except Stopped as stop:
            self.stopped = self.stopped or stop
            return _not_asked(question, language)

    async def _ask(self, question: Question, language: Language) -> Asked:
        prompt = prompts.load(question.template_id, language)
        messages: Sequence[Message] = fencing.render(prompt, question.inputs, question.settings)
        received: list[ChatReply] = []
        outcomes: list[Outcome] = []
        spent = 0
        while True:
            reply = await self.model.reply(
                ChatRequest(
                    template_id=question.template_id,
                    messages=messages,
                    inputs=question.inputs,
                    grades=question.grades,
                    schema=_schema(question.expects, question.grades),
                    attempt=len(received),
                    sample=question.sample_index,
                    language=language,
                    wants_logprobs=question.method == GradeMethod.LOG_PROBABILITY,
                    occasion=self.occasion,
                )
            )
            verdict = _read(question, reply)
            received.append(reply)
            outcomes.append(verdict.outcome)
            spent += not (self.retry_invalid and reply.is_cached)
            if verdict.outcome not in REASKED or spent >= self.attempts:
                return Asked(verdict, language, tuple(received), tuple(outcomes), prompt.sha256)
            messages = [*messages, *_reask(reply, verdict.outcome, question, language)]

    async def _compare(self, question: Question, language: Language) -> Asked:
        if self.embedding is None:
            return Asked(Verdict(question, Outcome.SKIPPED), language)
        left, right = await self.embedding.embed([question.inputs["left"], question.inputs["right"]])
        value, outcome = cosine(left, right), Outcome.GRADED
        if value is None:
            outcome = Outcome.EMPTY
        by = f"by {self.embedding.identity.model}"
        return Asked(Verdict(question, outcome, value=value, method=GradeMethod.EMBEDDING, reason=by), language)


def cosine(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Cosine of two vectors in [-1, 1]; null when either is zero or not finite, never NaN."""
    scale = math.hypot(*left) * math.hypot(*right)
    if not scale or not math.isfinite(scale):
        return None
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(left, right, strict=True)) / scale))


def _not_asked(question: Question, language: Language) -> Asked:
    return Asked(Verdict(question, Outcome.NOT_ASKED, method=question.method), language)


def _read(question: Question, reply: ChatReply) -> Verdict:
    if reply.failure is not None:
        return Verdict(question, reply.failure)
    match question.expects:
        case Expects.CLAIMS | Expects.STEPS:
            outcome, texts = replies.parse_claims(reply.text, question.expects.value)
            return Verdict(question, outcome, texts=texts)
        case Expects.GENERATED_QUESTION:
            outcome, text, is_noncommittal = replies.parse_generated_question(reply.text)
            return Verdict(question, outcome, texts=(text,) if text else (), is_noncommittal=is_noncommittal)
        case _:
            return _grade(question, reply)


def _grade(question: Question, reply: ChatReply) -> Verdict:
    # A rubric or G-Eval puts its own scale into the prompt (settings), and a score on it is a grade of it.
    fields = replies.GRADE_FIELDS if question.settings else replies.CODE_FIELDS
    parsed = replies.parse_grade(reply.text, question.grades, fields)
    if parsed.outcome != Outcome.GRADED or parsed.grade is None:
        return Verdict(question, parsed.outcome, reason=parsed.reason)
    worst, best = question.grades[0], question.grades[-1]
    expected: float | None = None
    if question.method == GradeMethod.LOG_PROBABILITY and reply.logprobs:
        expected = replies.expected_grade(reply.logprobs, question.grades, reply.text)
    method = question.method
    if method == GradeMethod.LOG_PROBABILITY and expected is None:
        method = GradeMethod.SINGLE
    value = ((parsed.grade if expected is None else expected) - worst) / (best - worst)
    return Verdict(question, Outcome.GRADED, parsed.grade, value, method=method, reason=parsed.reason)


def _reask(reply: ChatReply, outcome: Outcome, question: Question, language: Language) -> list[Message]:
    """What is added to the conversation: the unusable reply, and what was wrong with it."""
    allowed = ", ".join(map(str, question.grades)) or question.expects
    text = prompts.reask(outcome, language).replace("{{ grades }}", allowed)
    return [{"role": "assistant", "content": reply.text[:2000]}, {"role": "user", "content": text}]


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXTS = {
    expects: _object(**{expects.value: {"type": "array", "items": {"type": "string"}}})
    for expects in (Expects.CLAIMS, Expects.STEPS)
}
_GENERATED = _object(question={"type": "string"}, is_noncommittal={"type": "boolean"})
_GRADES: dict[tuple[int, ...], dict[str, object]] = {}


def _schema(expects: Expects, grades: tuple[int, ...]) -> dict[str, object]:
    if expects in _TEXTS:
        return _TEXTS[expects]
    if expects == Expects.GENERATED_QUESTION:
        return _GENERATED
    return _GRADES.setdefault(grades, _object(grade={"type": "integer", "enum": list(grades)}))
