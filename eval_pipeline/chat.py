"""What the core asks of a model: a request, a reply, and the two protocols an adapter implements.

No provider, no transport and no caching belongs here; those live in `llm/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from eval_pipeline.vocabulary import Language, Outcome

Message = Mapping[str, str]
"""One chat message: `{"role": "system" | "user" | "assistant", "content": text}`."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model.

    Attributes:
        template_id: which prompt was rendered, such as `answer_accuracy.1`.
        messages: the rendered messages.
        inputs: the unfenced texts behind the messages, by variable name; for judges that read no prompt.
        grades: allowed grades, ascending; empty when the reply is not a grade.
        schema: JSON schema of the reply for structured output, or null for free text.
        attempt: 0 first; rises with each re-ask of an unusable reply.
        sample: which of several independent draws this is.
        language: language of the prompt.
        wants_logprobs: ask for token log-probabilities.
        occasion: empty in ordinary runs; else a name that keeps the question apart in the ledger (canary, noise floor).
    """

    template_id: str
    messages: Sequence[Message]
    inputs: Mapping[str, str] = field(default_factory=dict)
    grades: tuple[int, ...] = ()
    schema: Mapping[str, object] | None = None
    attempt: int = 0
    sample: int = 0
    language: Language = Language.EN
    wants_logprobs: bool = False
    occasion: str = ""


@dataclass(frozen=True, slots=True)
class TokenAlternatives:
    """One token of a reply with the likeliest alternatives: `(token, log-probability)`, natural logarithm."""

    token: str
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply, usable or not.

    Attributes:
        text: what the model said; empty when `failure` is set.
        failure: why there is no usable text (refused, truncated, too_long, provider_error, timeout), else null.
        detail: the provider's own words on a failure.
        model: model name as returned; null when the provider gave none.
        input_tokens, cached_input_tokens, output_tokens: as billed; null when unknown.
        cost_usd: null when the price is unknown, never 0 for unknown.
        latency_seconds: wall time of the answering request; null for a reply from the ledger.
        transport_retry_count: how many requests failed before this one was answered.
        is_cached: true when no call was made.
        ledger_key: content address of the question; null when no ledger is in use.
        logprobs: token alternatives in order, or null.
    """

    text: str
    failure: Outcome | None = None
    detail: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_seconds: float | None = None
    transport_retry_count: int = 0
    is_cached: bool = False
    ledger_key: str | None = None
    logprobs: tuple[TokenAlternatives, ...] | None = None


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Who answers: everything that can move a reply, and nothing that cannot (no key, timeout or concurrency).

    Attributes:
        endpoint: declared name that stands for the base URL.
        model: pinned model name.
        revision: weights revision of a self-hosted model, or empty.
        parameters: request parameters such as temperature and seed.
    """

    endpoint: str
    model: str
    revision: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers chat requests.

    `reply` returns a `ChatReply` for every outcome that concerns one question, and raises a `Stopped` error for what
    concerns the whole run (bad key, exhausted quota, budget).
    """

    @property
    def identity(self) -> ModelIdentity: ...

    async def reply(self, request: ChatRequest) -> ChatReply: ...


@runtime_checkable
class EmbeddingModel(Protocol):
    """Anything that maps texts to vectors: one row of floats per text, in order, not necessarily normalised."""

    @property
    def identity(self) -> ModelIdentity: ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]: ...
