"""How Chat Completions and the Responses API write a question and an answer. Nothing is sent from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.chat import ChatRequest, TokenAlternatives
from eval_pipeline.vocabulary import Outcome

TOP_LOGPROBS = 20
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a response body says, with the provider's words translated. Token counts are null when it gives none."""

    text: str
    failure: Outcome | None
    detail: str | None
    model: str | None
    system_fingerprint: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    logprobs: tuple[TokenAlternatives, ...] | None


def chat_body(model: str, request: ChatRequest, parameters: Mapping[str, object]) -> dict[str, Any]:
    """A request to `/chat/completions`."""
    body: dict[str, Any] = {"model": model, "messages": request.messages, **parameters}
    if request.schema is not None:
        body["response_format"] = {
            "type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": request.schema},
        }  # fmt: skip
    if request.wants_logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return body


def chat_answer(body: Any) -> Answer:
    """The answer in a `/chat/completions` body.

    Raises:
        TypeError, KeyError, IndexError, AttributeError, ValueError: it is none.
    """
    choice = body["choices"][0]
    message, usage = choice["message"], body.get("usage") or {}
    text = message.get("content") or ""
    failure, detail = _ended(message.get("refusal"), choice.get("finish_reason"))
    return Answer(
        _string(text), failure, detail, _name(body.get("model")), body.get("system_fingerprint"),
        _count(usage.get("prompt_tokens")), _count((usage.get("prompt_tokens_details") or {}).get("cached_tokens")),
        _count(usage.get("completion_tokens")), _logprobs((choice.get("logprobs") or {}).get("content")),
    )  # fmt: skip


def responses_body(model: str, request: ChatRequest, parameters: Mapping[str, object]) -> dict[str, Any]:
    """A request to `/responses`. `store: false`: a judge's questions are nobody's history."""
    body: dict[str, Any] = {"model": model, "input": request.messages, "store": False, **parameters}
    if "max_completion_tokens" in body:
        body["max_output_tokens"] = body.pop("max_completion_tokens")
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": request.schema}}
    if request.wants_logprobs:
        body |= {"include": ["message.output_text.logprobs"], "top_logprobs": TOP_LOGPROBS}
    return body


def responses_answer(body: Any) -> Answer:
    """The answer in a `/responses` body.

    Raises:
        TypeError, KeyError, IndexError, AttributeError, ValueError: it is none.
    """
    parts = [part for item in body["output"] if item.get("type") == "message" for part in item["content"]]
    texts = [part for part in parts if part.get("type") == "output_text"]
    refusal = next((part.get("refusal") for part in parts if part.get("type") == "refusal"), None)
    cut = (body.get("incomplete_details") or {}).get("reason")
    if body.get("status") == "failed":
        raise ValueError
    failure, detail = _ended(refusal, cut)
    usage = body.get("usage") or {}
    logprobs = [one for part in texts for one in part.get("logprobs") or ()]
    return Answer(
        _string("".join(part["text"] for part in texts)), failure, detail, _name(body.get("model")), None,
        _count(usage.get("input_tokens")), _count((usage.get("input_tokens_details") or {}).get("cached_tokens")),
        _count(usage.get("output_tokens")), _logprobs(logprobs),
    )  # fmt: skip


APIS: Mapping[
    str,
    tuple[str, Callable[[str, ChatRequest, Mapping[str, object]], dict[str, Any]], Callable[[Any], Answer]],
] = {
    "chat_completions": ("/chat/completions", chat_body, chat_answer),
    "responses": ("/responses", responses_body, responses_answer),
}
"""By name: path, how to write a question, how to read an answer."""


def _ended(refusal: object, reason: object) -> tuple[Outcome | None, str | None]:
    if refusal:
        return Outcome.REFUSED, str(refusal)[:500]
    if reason == "content_filter":
        return Outcome.REFUSED, "content_filter"
    if reason in _LENGTH:
        return Outcome.TRUNCATED, str(reason)
    return None, None


def _string(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError
    return text


def _name(model: object) -> str | None:
    return model if isinstance(model, str) and model else None


def _count(number: object) -> int | None:
    return number if isinstance(number, int) and number >= 0 else None


def _logprobs(content: Sequence[Mapping[str, Any]] | None) -> tuple[TokenAlternatives, ...] | None:
    if not content:
        return None
    return tuple(
        TokenAlternatives(
            one["token"], tuple((other["token"], other["logprob"]) for other in one.get("top_logprobs") or [one])
        )
        for one in content
    )
