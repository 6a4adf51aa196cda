"""The chain on a real language model that is a poor judge: it survives, and the accounting holds."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.local_llm
MODEL = "gemma-3-270m-q4_k_m.gguf"
COUNTS = (
    "scored_count",
    "no_response_count",
    "invalid_count",
    "no_claims_count",
    "not_applicable_count",
    "not_asked_count",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Base URL of llama.cpp's server with the weights that a package carries."""
    pytest.importorskip("xllamacpp", reason="needs the local-llm extra: make local-llm")
    command = [sys.executable, Path(__file__).with_name("local_server.py"), tmp_path_factory.mktemp("weights")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    yield process.stdout.readline().strip() + "/v1"
    process.stdin.close()
    process.wait(timeout=60)
    process.stdout.close()


def test_a_run_on_a_real_model_accounts_for_every_item(project, server, run_cli):
    path = project / "evaluation.yaml"
    judge = f"{{provider: llama.cpp, model: {MODEL}, base_url: '{server}', timeout_seconds: 600, max_in_flight: 2}}"
    text = path.read_text(encoding="utf-8").replace("{provider: embedded}", judge)
    path.write_text(text, encoding="utf-8")
    for labels in (project / "datasets" / "helpdesk" / "labels").glob("*.jsonl"):
        labels.unlink()
    done = run_cli("run", "--limit", "3", "--metric", "answer_accuracy", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    whole = next(row for row in found["summaries"] if row["stratum"] == "all")
    assert sum(whole[name] for name in COUNTS) == whole["item_count"] == 3
    assert found["gate"]["decision"] == "BLOCKED"
    verdicts = json.loads(
        run_cli("query", "select outcome, reply, input_tokens from verdicts", "--json", cwd=project).stdout
    )
    assert len(verdicts) == 6
    assert all(row["input_tokens"] > 50 for row in verdicts), "the server counted"
    print({row["outcome"] for row in verdicts}, whole["mean"]["value"])


def test_a_base_model_that_rambles_gives_no_grade_and_no_number(server):
    from eval_pipeline.asking import Asker
    from eval_pipeline.llm.openai_chat import OpenAIChat
    from eval_pipeline.metrics import declare
    from eval_pipeline.metrics.declaration import Sample
    from eval_pipeline.stages import judging, scoring
    from eval_pipeline.verdict_rows import Origin
    from eval_pipeline.vocabulary import Language

    class Free:
        """The model without structured output: it may say what it likes."""

        def __init__(self, chat):
            self.chat, self.identity = chat, chat.identity

        async def reply(self, request):
            return await self.chat.reply(replace(request, schema=None))

    metric = declare("answer_accuracy")
    whole = [
        Sample(item_id=f"q{n}", user_input=question, reference="Seoul", response=answer, language=Language.EN)
        for n, (question, answer) in enumerate(
            [("What is the capital of Korea?", "Seoul"), ("Capital of Korea?", "Busan")]
        )
    ]

    async def ask():
        parameters = {"temperature": 0, "max_tokens": 64, "stop": ["\n"]}
        async with OpenAIChat(
            MODEL, base_url=server, parameters=parameters, timeout_seconds=600, max_in_flight=2
        ) as chat:
            parts = judging.judge(
                whole, {"m": metric}, {"m": Asker(Free(chat), attempts=2)}, {"m": Origin("e", "m", "j", MODEL, "k")}
            )
            return pl.concat([frame async for frame in parts])

    verdicts = asyncio.run(ask())
    assert verdicts.height == 4
    assert verdicts.filter((pl.col("outcome") == "graded") != pl.col("value").is_not_null()).is_empty()
    values = scoring.values(metric, whole, verdicts, None)
    for sample, score in zip(whole, values, strict=True):
        own = verdicts.filter(pl.col("item_id") == sample.item_id)
        graded = own["value"].drop_nulls().to_list()
        assert score.value == (pytest.approx(sum(graded) / len(graded)) if graded else None)
        assert score.upper - score.lower == pytest.approx(1 - len(graded) / 2)
    print(verdicts.select("outcome", "reply").rows())
