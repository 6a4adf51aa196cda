"""What more workers bring: `warm_ledger` in one process and in two, then the run that finds every answer.

ITEMS x 3 dual metrics = 6 questions an item, against a loopback server in its own process that takes LATENCY seconds an
answer. Wall time is a whole command, start-up, responses and tables included; CPU is that of the command and its children.

python benchmarks/warming.py [--items 10000] [--latency 0.25] [--in-flight 128]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from judging import SERVER, control, requests, samples

CONFIG = """version: 1
datasets: {{big: {{path: datasets/big}}}}
systems: {{s: {{source: recorded, path: responses.jsonl, release: "1"}}}}
judges:
  j: {{provider: openai, model: judge-2024-07-18, base_url: {base_url}, max_in_flight: {in_flight}}}
metrics: {{answer_accuracy: {{}}, context_relevance: {{}}, response_groundedness: {{}}}}
"""
WAYS = {"one process": ("in_process", 1, {}), "two processes": ("multiprocess", 2, {"max_concurrent": 2})}


def timed(command: list[str], folder: Path, **variables: str) -> tuple[float, float, float]:
    """Wall and CPU seconds, and the largest process of any command so far in MB."""
    environment = os.environ | {"DAGSTER_HOME": str(folder / "dagster_home"), "EVAL_PROJECT": str(folder)} | variables
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr[-3000:]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 1024


def project(folder: Path, items: int, base_url: str, in_flight: int) -> None:
    whole = samples(items)
    (folder / "evaluation.yaml").write_text(CONFIG.format(base_url=base_url, in_flight=in_flight), encoding="utf-8")
    (folder / "dagster_home").mkdir()
    rows = [{"item_id": one.item_id, "user_input": one.user_input, "reference": one.reference} for one in whole]
    answers = [
        {"item_id": one.item_id, "response": one.response, "retrieved_contexts": one.retrieved_contexts}
        for one in whole
    ]
    for name, lines in (("items.jsonl", rows), ("responses.jsonl", answers)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    cli = [sys.executable, "-m", "eval_pipeline.cli"]
    timed([*cli, "dataset", "add", "big", "items.jsonl", "--tag", "v1", "--message", "m"], folder)


def megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file()) / 1e6


def main(items: int, latency: float, in_flight: int) -> None:
    server = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    root = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    dagster = [str(Path(sys.executable).with_name("dagster")), "job", "execute", "-m", "eval_pipeline.definitions"]
    ideal = items * 6 * latency / in_flight
    print(
        f"{items * 6:,} questions, {latency * 1000:.0f} ms an answer, {in_flight} in flight a process: ideal {ideal:.0f} s"
    )
    print("| | wall s | calls/s | CPU s | calls | peak RSS MB so far |\n| --- | --: | --: | --: | --: | --: |")
    try:
        for name, (executor, shards, config) in WAYS.items():
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                project(folder, items, f"{root}/v1", in_flight)
                (folder / "warm.yaml").write_text(json.dumps({"execution": {"config": config}}), encoding="utf-8")
                control(root, latency=latency)
                wall, cpu, peak = timed([*dagster, "-j", "warm_ledger", "-c", "warm.yaml"], folder,
                                  EVAL_EXECUTOR=executor, EVAL_SHARDS=str(shards))  # fmt: skip
                calls = requests(root)
                print(
                    f"| warm_ledger, {name} | {wall:.0f} | {calls / wall:,.0f} | {cpu:.0f} | {calls:,} | {peak:,.0f} |",
                    flush=True,
                )
                wall, cpu, peak = timed([sys.executable, "-m", "eval_pipeline.cli", "run", "--resume"], folder)
                print(
                    f"| the run after it | {wall:.0f} | – | {cpu:.0f} | {requests(root) - calls:,} | {peak:,.0f} |",
                    flush=True,
                )
                sizes = {path.name: megabytes(path) for path in (folder / "warehouse").iterdir()}
                each = {
                    "ledger": sum(size for file, size in sizes.items() if file.startswith("ledger")),
                    "tables": sizes["tables"], "database": sizes["results.duckdb"],
                }  # fmt: skip
        print("bytes a verdict: " + ", ".join(f"{what} {size * 1e6 / items / 6:,.0f}" for what, size in each.items()))
    finally:
        server.stdin.close()
        server.wait(timeout=10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=0.25)
    parser.add_argument("--in-flight", type=int, default=128)
    given = parser.parse_args()
    main(given.items, given.latency, given.in_flight)
