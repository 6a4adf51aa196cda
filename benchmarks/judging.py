"""What judging costs: our stage with ledger, a bare AsyncOpenAI loop and a raw aiohttp loop, in one run, interleaved.

1,000 items x 3 dual metrics = 6,000 calls against a loopback server in its own process. Each measurement is a fresh
process. CPU is that process's own user and system time per call, everything included: rendering, ledger, parsing, tables.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests" / "llm" / "loopback_server.py"
MODEL = "judge-2024-07-18"
METRICS = ("answer_accuracy", "context_relevance", "response_groundedness")


def samples(count, changed=0):
    from eval_pipeline.metrics.declaration import Sample
    from eval_pipeline.vocabulary import Language

    filler = "The quick brown fox jumps over the lazy dog near the river bank. " * 12
    korean = "담당자는 매월 십오일까지 지난달 사용 내역을 확인하고 이상이 있으면 바로 알려야 합니다. " * 12
    return [
        Sample(
            item_id=f"i{n}", user_input=f"What is the value of setting {n}?", reference=f"It is {n * 3}.",
            response=f"It is {n * 3}{' now' if n < changed else ''}.", retrieved_contexts=(f"Setting {n} is {n * 3}. {korean if n % 5 == 0 else filler}",),
            language=Language.KO if n % 5 == 0 else Language.EN,
        )
        for n in range(count)
    ]  # fmt: skip


async def ours(base_url, folder, count, changed, in_flight):
    from eval_pipeline.asking import Asker
    from eval_pipeline.llm.ledger import Ledger
    from eval_pipeline.llm.ledgered_chat import LedgeredChat
    from eval_pipeline.llm.openai_chat import OpenAIChat
    from eval_pipeline.metrics import declare
    from eval_pipeline.stages import judging
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import VERDICTS
    from eval_pipeline.verdict_rows import Origin

    metrics = {name: declare(name) for name in METRICS}
    origins = {name: Origin("e", name, "j", MODEL, "k") for name in METRICS}
    whole = samples(count, changed)
    warehouse = Warehouse(str(Path(folder) / "warehouse"))
    started = time.perf_counter()
    async with (
        Ledger(f"sqlite:///{folder}/ledger.sqlite") as ledger,
        OpenAIChat(MODEL, base_url=base_url, max_in_flight=in_flight) as chat,
    ):
        asker = Asker(LedgeredChat(chat, ledger))
        part = graded = 0
        async for frame in judging.judge(whole, metrics, dict.fromkeys(METRICS, asker), origins):
            warehouse.write(VERDICTS, "e", frame, part=part, replace=True)
            graded += int((frame["outcome"] == "graded").sum())
            part += 1
    assert graded == count * 6, graded
    return time.perf_counter() - started


def bodies(count):
    from eval_pipeline import fencing, prompts
    from eval_pipeline.metrics import declare

    for sample in samples(count):
        for name in METRICS:
            for question in declare(name).questions(sample):
                yield fencing.render(prompts.load(question.template_id, sample.language), question.inputs)


async def sdk(base_url, _, count, __, in_flight):
    from openai import AsyncOpenAI

    messages, place = list(bodies(count)), asyncio.Semaphore(in_flight)
    started = time.perf_counter()
    async with AsyncOpenAI(base_url=base_url, api_key="x", max_retries=0) as client:

        async def one(body):
            async with place:
                reply = await client.chat.completions.create(model=MODEL, messages=body, temperature=0)
                return json.loads(reply.choices[0].message.content)["grade"]

        await asyncio.gather(*map(one, messages))
    return time.perf_counter() - started


async def raw(base_url, _, count, __, in_flight):
    import aiohttp
    import orjson

    messages, place = list(bodies(count)), asyncio.Semaphore(in_flight)
    started = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def one(body):
            data = orjson.dumps({"model": MODEL, "messages": body, "temperature": 0})
            async with place, session.post(f"{base_url}/chat/completions", data=data) as reply:
                return orjson.loads(orjson.loads(await reply.read())["choices"][0]["message"]["content"])["grade"]

        await asyncio.gather(*map(one, messages))
    return time.perf_counter() - started


WAYS = {"ours": ours, "AsyncOpenAI": sdk, "aiohttp": raw}


def child(way, base_url, folder, count, changed, in_flight):
    import eval_pipeline.metrics  # noqa: F401 - imports are not what is measured

    if way == "ours":
        import aiohttp  # noqa: F401
        import polars as pl  # noqa: F401
        import sqlalchemy  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall = asyncio.run(WAYS[way](base_url, folder, count, changed, in_flight))
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"wall": wall, "cpu": cpu, "rss": after.ru_maxrss / 1024}))


def measure(way, base_url, folder, count, in_flight, changed=0):
    command = [sys.executable, __file__, "--child", way, base_url, folder, str(count), str(changed), str(in_flight)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def requests(root):
    return json.loads(urllib.request.urlopen(f"{root}/_counters").read())["requests"]


def control(root, **knobs):
    urllib.request.urlopen(urllib.request.Request(f"{root}/_control", json.dumps(knobs).encode())).read()


def main(count, rounds):
    server = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    root = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    calls = count * 6
    print(
        "| latency ms | way | calls/s | CPU ms/call | wall / ideal | peak RSS MB |\n| --: | --- | --: | --: | --: | --: |"
    )
    try:
        for latency in (0.0, 0.05, 0.5):
            control(root, latency=latency)
            best = {}
            for _ in range(rounds if latency == 0 else 1):
                for way in WAYS:
                    with tempfile.TemporaryDirectory() as folder:
                        found = measure(way, f"{root}/v1", folder, count, 256)
                    if way not in best or found["cpu"] < best[way]["cpu"]:
                        best[way] = found
            for way, found in best.items():
                ideal = calls / 256 * latency
                ratio = f"{found['wall'] / ideal:.2f}" if ideal else "–"
                print(
                    f"| {latency * 1000:.0f} | {way} | {calls / found['wall']:,.0f} | {found['cpu'] / calls * 1000:.2f} | {ratio} | {found['rss']:.0f} |",
                    flush=True,
                )
            if latency == 0:
                print(f"ratio of CPU, ours to AsyncOpenAI: {best['ours']['cpu'] / best['AsyncOpenAI']['cpu']:.2f}")
        control(root)
        with tempfile.TemporaryDirectory() as folder:
            measure("ours", f"{root}/v1", folder, count, 256)
            for name, changed in (("cached rerun", 0), ("one changed item", 1)):
                control(root)
                found = measure("ours", f"{root}/v1", folder, count, 256, changed)
                print(f"{name}: {found['wall']:.2f} s, {requests(root)} calls")
        control(root)
        with tempfile.TemporaryDirectory() as folder:
            found = measure("ours", f"{root}/v1", folder, count * 10, 256)
        print(
            f"{count * 60:,} calls: peak RSS {found['rss']:.0f} MB, {found['cpu'] / count / 60 * 1000:.2f} ms CPU a call"
        )
    finally:
        server.stdin.close()
        server.wait(timeout=10)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        way, base_url, folder, *numbers = sys.argv[2:]
        child(way, base_url, folder, *map(int, numbers))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--items", type=int, default=1000)
        parser.add_argument("--rounds", type=int, default=3)
        given = parser.parse_args()
        main(given.items, given.rounds)
