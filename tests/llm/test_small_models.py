"""Recorded replies, embeddings, prices, token estimates and who may judge whom."""

import asyncio
import json
import math
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.asking import cosine
from eval_pipeline.chat import ChatModel, ChatRequest, EmbeddingModel
from eval_pipeline.errors import FloatingJudge, JudgeMisconfigured, ProviderStopped, SelfEvaluation
from eval_pipeline.llm import prices
from eval_pipeline.llm.admission import admit, canonical_model, family, is_floating
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.ledgered_chat import LedgeredChat
from eval_pipeline.llm.ngram_embedding import NgramEmbedding
from eval_pipeline.llm.openai_embedding import OpenAIEmbedding
from eval_pipeline.llm.recorded_chat import RecordedChat, inputs_sha256
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.llm.tokens import estimate
from eval_pipeline.vocabulary import Outcome

REQUEST = ChatRequest("t.1", [], inputs={"response": "답", "reference": "a"})


def recorded(path, *rows):
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return RecordedChat(path)


def test_a_recorded_reply_is_found_by_texts_or_their_hash(tmp_path):
    by_texts = recorded(tmp_path / "a.jsonl", {"template_id": "t.1", "inputs": dict(REQUEST.inputs), "reply": "4"})
    by_hash = recorded(tmp_path / "b.jsonl", {"template_id": "t.1", "inputs_sha256": inputs_sha256(REQUEST.inputs), "reply": 4})  # fmt: skip
    for model in (by_texts, by_hash):
        assert isinstance(model, ChatModel)
        assert asyncio.run(model.reply(REQUEST)).text == "4"


def test_what_is_not_recorded_is_never_a_grade(tmp_path):
    reply = asyncio.run(recorded(tmp_path / "a.jsonl").reply(REQUEST))
    assert (reply.text, reply.failure) == ("", Outcome.PROVIDER_ERROR)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"template_id": "t.1"}', "null", '{"template_id": "t", "inputs": 3, "reply": "x"}']
)
def test_a_wrong_line_is_named(tmp_path, line):
    (tmp_path / "a.jsonl").write_text("\n" + line)
    with pytest.raises(JudgeMisconfigured, match=r"a\.jsonl:2"):
        RecordedChat(tmp_path / "a.jsonl")


def test_a_ledger_export_is_replayed_for_the_same_judge_only(tmp_path):
    async def export():
        async with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
            await LedgeredChat(ScriptedChat(lambda _: "4", model="m", endpoint="e"), ledger).reply(REQUEST)
            return list(ledger.export())

    (row,) = asyncio.run(export())
    model = recorded(tmp_path / "a.jsonl", row)
    assert asyncio.run(model.reply(REQUEST)).failure == Outcome.PROVIDER_ERROR
    same = RecordedChat(tmp_path / "a.jsonl", model="m", endpoint="e")
    assert asyncio.run(same.reply(REQUEST)).text == "4"


def test_a_scripted_model_may_answer_later():
    async def answer(request):
        await asyncio.sleep(0)
        return request.template_id

    model = ScriptedChat(answer)
    assert asyncio.run(model.reply(REQUEST)).text == "t.1"
    assert model.requests == [REQUEST]


def embed(model, *texts):
    async def run():
        async with model:
            return await model.embed(texts)

    return asyncio.run(run())


def test_vectors_come_in_the_order_of_the_texts_and_each_text_is_sent_once(loopback):
    model = OpenAIEmbedding("e", base_url=loopback.base_url, api_key="sk-secret")
    vectors = embed(model, "a", "bb", "a", " ")
    assert vectors == [[1, 2, 0.5], [2, 1, 0.5], [1, 2, 0.5], [0, 0, 0]]
    assert json.loads(loopback.counters()["last_body"])["input"] == ["a", "bb"]


def test_an_endpoint_without_vectors_stops_the_run(loopback):
    loopback.control(faults={"500": 1.0})
    with pytest.raises(ProviderStopped, match="no embeddings"):
        embed(OpenAIEmbedding("e", base_url=loopback.base_url, transport_retries=1), "a")
    assert loopback.counters()["requests"] == 2


@given(st.text(max_size=80))
def test_ngram_vectors_are_unit_or_zero_and_the_same_each_time(text):
    model = NgramEmbedding()
    assert isinstance(model, EmbeddingModel)
    (one,), (two,) = asyncio.run(model.embed([text])), asyncio.run(model.embed([text]))
    assert one == two
    assert math.isclose(math.hypot(*one), 1.0) or not any(one)


def test_ngram_vectors_of_like_texts_are_closer():
    near, far = "환불은 7일 안에 처리됩니다", "점심 메뉴는 비빔밥입니다"
    anchor, close, other = asyncio.run(NgramEmbedding().embed(["환불은 7일 이내에 처리된다", near, far]))
    assert cosine(anchor, close) > cosine(anchor, other) + 0.2


def test_a_price_is_per_million_tokens_with_cached_input_apart():
    # 800 at 0.15 + 200 at 0.075 + 100 at 0.60, per million
    assert prices.cost("gpt-4o-mini-2024-07-18", 1000, 200, 100) == pytest.approx(195e-6)


@pytest.mark.parametrize("usage", [(None, 0, 1), (1, 0, None)])
def test_an_unknown_price_or_usage_is_null_not_zero(usage):
    assert prices.cost("gpt-4o-mini-2024-07-18", *usage) is None
    assert prices.cost("nobody-knows", 1, 0, 1) is None


def test_the_price_table_is_dated_and_whole():
    assert date.fromisoformat(prices.table()["dated"])
    assert all({"input", "output"} <= set(price) for price in prices.table()["models"].values())


def test_own_prices_go_over_the_table():
    assert prices.cost("mine", 1_000_000, 0, 0, {"mine": {"input": 3, "output": 1}}) == 3.0


@pytest.mark.parametrize(
    "text", ["", "a", "The quick brown fox. " * 50, "환불은 칠 일 안에 처리됩니다. " * 50, "日本語の文章です。" * 50]
)
def test_token_estimates_are_positive_and_grow(text):
    assert 1 <= estimate(text) <= estimate(text + text)


def test_token_estimates_are_within_a_tenth_of_a_real_tokenizer():
    found = json.loads(Path(__file__).with_name("counted_tokens.json").read_text(encoding="utf-8"))["texts"]
    for is_korean in (True, False):
        texts = [row for row in found if (max(row["text"]) >= "가") == is_korean]
        counted = sum(row["tokens"] for row in texts)
        assert sum(estimate(row["text"]) for row in texts) == pytest.approx(counted, rel=0.10)


def test_a_hangul_character_weighs_more_than_a_latin_letter():
    assert estimate("가" * 100) > 2 * estimate("a" * 100)


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("azure/gpt-4o", "gpt-4o"),
        ("openrouter/openai/gpt-4.1-mini", "gpt-4.1-mini"),
        ("ft:gpt-4o-2024-08-06:acme::abc", "gpt-4o"),
        ("models/gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gpt-4-1106-preview", "gpt-4"),
        ("llama3:latest", "llama3"),
        ("qwen2.5:7b", "qwen2.5:7b"),
    ],
)
def test_one_model_has_one_canonical_name(name, bare):
    assert canonical_model(name) == bare


@pytest.mark.parametrize("system_model", ["gpt-4o", "azure/gpt-4o-2024-11-20", "ft:gpt-4o-2024-08-06:us::1"])
def test_a_model_does_not_judge_itself_under_any_name(system_model):
    with pytest.raises(SelfEvaluation, match="does not grade itself"):
        admit("j", "gpt-4o-2024-08-06", "s", [system_model], allow_floating=False)


@pytest.mark.parametrize(
    ("model", "floats"),
    [("gpt-4o", True), ("chatgpt-4o-latest", True), ("azure/gpt-5", True), ("claude-3-5-sonnet-latest", True), ("llama3:latest", True),
     ("gpt-4o-2024-08-06", False), ("gpt-3.5-turbo-0125", False), ("gemini-2.0-flash-001", False), ("qwen2.5:7b", False), ("our-judge", False)],
)  # fmt: skip
def test_an_alias_that_moves_is_told_from_a_pin(model, floats):
    assert is_floating(model) is floats


def test_an_alias_is_refused_or_marked():
    with pytest.raises(FloatingJudge, match="gpt-4o"):
        admit("j", "gpt-4o", "s", ["claude-3-haiku-20240307"], allow_floating=False)
    assert admit("j", "gpt-4o", "s", ["claude-3-haiku-20240307"], allow_floating=True)[0][0].startswith("unpinned")


def test_a_family_and_an_unknown_system_are_flagged():
    assert family("chatgpt-4o-latest") == family("gpt-4.1-2025-04-14") == "gpt"
    ((remark, korean),) = admit("j", "gpt-4.1-2025-04-14", "s", ["gpt-4o-2024-08-06"], allow_floating=False)
    assert remark.startswith("family")
    assert korean.startswith("계열")
    ((remark, korean),) = admit("j", "gpt-4.1-2025-04-14", "s", [], allow_floating=False)
    assert remark.startswith("unknown")
    assert korean.startswith("알 수 없음")


def test_a_pin_that_retires_soon_is_flagged():
    def remarks(today):
        return admit("j", "gpt-3.5-turbo-1106", "s", ["x"], allow_floating=False, today=today)

    assert remarks(date(2026, 1, 1)) == []
    assert "retires on 2026-09-28" in remarks(date(2026, 9, 1))[0][0]
    assert "was to retire on 2026-09-28" in remarks(date(2026, 10, 1))[0][0]
