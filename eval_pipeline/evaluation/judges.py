"""Builds the models that the configuration names. A further provider is a branch here and an adapter in `llm/`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatModel, EmbeddingModel
from eval_pipeline.config import JudgeConfig, SystemConfig
from eval_pipeline.errors import BatchWaiting, JudgeMisconfigured, Stopped
from eval_pipeline.evaluation.project import Project
from eval_pipeline.llm.limits import Budget
from eval_pipeline.metrics.declaration import Metric
from eval_pipeline.stages import judging

if TYPE_CHECKING:
    from eval_pipeline.llm.batched_chat import BatchedChat
    from eval_pipeline.llm.ledger import Paid


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may spend; null is no limit."""

    max_calls: int | None = None
    max_cost_usd: float | None = None

    def less(self, spent: Paid) -> Limits:
        """What is left; an unknown cost takes nothing, so only `max_calls` can stop it."""
        return Limits(
            None if self.max_calls is None else max(0, self.max_calls - spent.call_count),
            None if self.max_cost_usd is None else max(0.0, self.max_cost_usd - (spent.cost_usd or 0.0)),
        )


@dataclass(slots=True)
class Bench:
    """The judges of one run, behind one ledger, and the embedding model.

    Attributes:
        stopped: known when the bench is closed: what keeps questions of a batched judge from having their replies.
    """

    judges: Mapping[str, ChatModel]
    embedding: EmbeddingModel
    stopped: Stopped | None = None


def expand(text: str | None, environment: Mapping[str, str], judge: str) -> str | None:
    """Replaces `${NAME}` by its environment variable.

    Raises:
        JudgeMisconfigured: a named variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in environment:
            raise JudgeMisconfigured(judge=judge, reason=f"environment variable {name} is not set")
        return environment[name]

    return None if text is None else re.sub(r"\$\{(\w+)\}", value, text)


def judge_keys(project: Project, judge: str, metrics: Mapping[str, Metric]) -> dict[str, str | None]:
    """Judge key by metric, where `judge` judges every metric that names no judge of its own."""
    chosen = {name: project.config.metrics[name].judge or judge for name in metrics}
    identities = {one: build_judge(one, project.config.judges[one], project).identity for one in set(chosen.values())}
    embedding = embedding_name(project)
    return {name: judging.judge_key(identities[chosen[name]], metric, embedding) for name, metric in metrics.items()}


@asynccontextmanager
async def open_bench(
    project: Project,
    names: tuple[str, ...],
    limits: Limits = Limits(),
    *,
    in_batches: bool = False,
    payer: str | None = None,
) -> AsyncIterator[Bench]:
    """Opens the named judges for one run, each behind the project's ledger, on the account of `payer`.

    Args:
        in_batches: ask by batch every judge that can be, not only those configured so.

    Raises:
        JudgeMisconfigured: a judge lacks its key or a variable.
    """
    from eval_pipeline.llm.batched_chat import BatchedChat
    from eval_pipeline.llm.ledger import Ledger
    from eval_pipeline.llm.ledgered_chat import LedgeredChat

    project.local.mkdir(parents=True, exist_ok=True)
    budget = Budget(max_calls=limits.max_calls, max_cost_usd=limits.max_cost_usd)
    async with AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(Ledger(project.ledger_url))
        judges: dict[str, ChatModel] = {}
        batched: dict[str, BatchedChat] = {}
        for name in names:
            config = project.config.judges[name]
            model = build_judge(name, config, project, budget)
            if config.batch or (in_batches and config.has_endpoint):
                model = batched[name] = BatchedChat(model, ledger, payer)  # pyright: ignore[reportArgumentType]
            if hasattr(model, "__aenter__"):
                await stack.enter_async_context(model)  # pyright: ignore[reportArgumentType]
            judges[name] = LedgeredChat(model, ledger, payer)
        for chat in batched.values():
            await chat.collect()
        bench = Bench(judges, await _embedding(project, stack))
        yield bench
        for name, chat in batched.items():
            bench.stopped = bench.stopped or await _submit(name, chat)


async def _submit(name: str, chat: BatchedChat) -> Stopped | None:
    try:
        await chat.submit()
    except Stopped as stop:
        return stop
    return BatchWaiting(judge=name, count=chat.waiting_count) if chat.waiting_count else None


def paid(project: Project, payers: Sequence[str]) -> Paid:
    """What was ever paid on these accounts, whichever process paid it."""
    from eval_pipeline.llm.ledger import Ledger

    ledger = Ledger(project.ledger_url)
    try:
        return ledger.paid(payers)
    finally:
        ledger.close()


def first_stop(askers: Mapping[str, Asker], bench: Bench) -> Stopped | None:
    """What stopped one of the askers of a bench that is closed; null when all went through."""
    return next((asker.stopped for asker in askers.values() if asker.stopped), bench.stopped)


def refuse_unanswerable(project: Project, judge: str, metrics: Mapping[str, Metric]) -> None:
    """Nothing may be asked of a judge that it cannot answer: an NLI model judges claims, and makes none.

    Args:
        judge: the run's own, which makes the claims and judges every metric that names no other.

    Raises:
        JudgeMisconfigured: something would be.
    """
    from eval_pipeline.llm.nli_judge import unanswerable

    nli = {name for name, config in project.config.judges.items() if config.provider == "nli"}
    for name, metric in metrics.items():
        chosen = project.config.metrics[name].judge or judge
        strange = unanswerable(metric.template_ids) if chosen in nli else []
        if strange:
            reason = f"an NLI model only says whether a text supports a claim, and {name} asks {', '.join(strange)}; give {name} another `judge`"
            raise JudgeMisconfigured(judge=chosen, reason=reason)
        if metric.decomposes and judge in nli:
            reason = f"an NLI model cannot make the claims {name} is about; let another be the run's judge and write `{name}: {{judge: {judge}}}`"
            raise JudgeMisconfigured(judge=judge, reason=reason)


def build_judge(name: str, config: JudgeConfig, project: Project, budget: Budget | None = None) -> ChatModel:
    """The chat model behind one judge of the configuration, without ledger."""
    if config.provider == "embedded":
        from eval_pipeline.llm.overlap_judge import OverlapJudge

        return _metered(OverlapJudge(), budget)
    if config.provider == "nli":
        from eval_pipeline.llm.nli_judge import NliJudge

        if config.path is None:
            raise JudgeMisconfigured(judge=name, reason="provider `nli` needs `path`, the folder of a local model")
        return _metered(NliJudge(project.root / config.path, name=name), budget)
    if config.provider == "recorded":
        from eval_pipeline.llm.recorded_chat import RecordedChat

        if config.path is None:
            raise JudgeMisconfigured(judge=name, reason="provider `recorded` needs `path`")
        recorded = RecordedChat(
            project.root / config.path, model=config.model, endpoint=config.endpoint or "recorded",
            revision=config.revision, parameters=config.parameters,
        )  # fmt: skip
        return _metered(recorded, budget)
    from eval_pipeline.llm.openai_chat import OpenAIChat

    return OpenAIChat(
        config.model,
        base_url=expand(config.base_url, project.environment, name),
        api_key=_key(name, config.api_key_env, config.base_url, project.environment),
        endpoint=config.endpoint,
        request_model=config.request_model,
        revision=config.revision,
        parameters=dict(config.parameters),
        max_in_flight=config.max_in_flight,
        requests_per_minute=config.requests_per_minute,
        tokens_per_minute=config.tokens_per_minute,
        timeout_seconds=config.timeout_seconds,
        transport_retries=config.transport_retries,
        # An alias that was let in answers under the snapshot it stands for today.
        returns=config.returns or (rf"(?:.*/)?{re.escape(config.model)}-.+" if config.allow_floating else None),
        budget=budget,
        api=config.api,
    )


def _metered(model: ChatModel, budget: Budget | None) -> ChatModel:
    from eval_pipeline.llm.metered_chat import MeteredChat

    return model if budget is None else MeteredChat(model, budget)


def system_model(name: str, config: SystemConfig, environment: Mapping[str, str]) -> ChatModel | None:
    """The chat model of a system of source `openai`, without ledger: `refresh` must ask it anew. Null for other sources."""
    if config.source != "openai" or config.model is None:
        return None
    from eval_pipeline.llm.openai_chat import OpenAIChat

    return OpenAIChat(
        config.model,
        base_url=expand(config.base_url, environment, name),
        api_key=_key(name, config.api_key_env, config.base_url, environment),
        max_in_flight=config.max_in_flight,
        timeout_seconds=config.timeout_seconds,
        transport_retries=config.retries,
        returns=".*",  # whichever model a system answers with is its own affair
    )


def _key(judge: str, variable: str | None, base_url: str | None, environment: Mapping[str, str]) -> str | None:
    """The API key. Only OpenAI itself cannot do without one; a named variable must be set."""
    name = variable or (None if base_url else "OPENAI_API_KEY")
    if name is None:
        return None
    if not environment.get(name):
        raise JudgeMisconfigured(judge=judge, reason=f"environment variable {name} is not set (it holds the API key)")
    return environment[name]


def embedding_name(project: Project) -> str:
    """The embedding model's name, without building it."""
    from eval_pipeline.llm.ngram_embedding import NgramEmbedding
    from eval_pipeline.llm.use_embedding import MODEL

    config = project.config.embedding
    return {"embedded": NgramEmbedding.identity.model, "local": MODEL}.get(config.provider, config.model)


async def _embedding(project: Project, stack: AsyncExitStack) -> EmbeddingModel:
    config = project.config.embedding
    if config.provider == "embedded":
        from eval_pipeline.llm.ngram_embedding import NgramEmbedding

        return NgramEmbedding()
    if config.provider == "local":
        from eval_pipeline.llm.use_embedding import UseEmbedding

        return UseEmbedding()
    from eval_pipeline.llm.openai_embedding import OpenAIEmbedding

    model = OpenAIEmbedding(
        config.model,
        base_url=expand(config.base_url, project.environment, "embedding"),
        api_key=_key("embedding", config.api_key_env, config.base_url, project.environment),
        endpoint=config.endpoint,
        timeout_seconds=config.timeout_seconds,
    )
    return await stack.enter_async_context(model)
