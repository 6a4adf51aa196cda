"""What loading costs: Dagster alone, this code location, and what it does not load; fresh processes, interleaved.

CPU is the process's own user and system time. Bytecode is compiled before the first round.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

ROUNDS = 5
WAYS = {
    "import dagster": "import dagster",
    "the code location": "import eval_pipeline.definitions",
    "import great_expectations": "import great_expectations",
}
MEASURE = """
import json, resource, sys, time
began = time.perf_counter()
{statement}
wall = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({{"wall": wall, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss / 1024}}))
"""


def measure(statement: str) -> dict[str, float]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env=kept,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for number in range(ROUNDS + 1):
        for name, statement in WAYS.items():
            one = measure(statement)
            if number:  # the first round compiles and fills the page cache
                found[name].append(one)
    print("| | CPU s | wall s | peak RSS MB | of `import dagster`'s CPU |\n| --- | --: | --: | --: | --: |")
    base = min(one["cpu"] for one in found["import dagster"])
    for name, rounds in found.items():
        best = min(rounds, key=lambda one: one["cpu"])
        wall = min(one["wall"] for one in rounds)
        print(f"| {name} | {best['cpu']:.2f} | {wall:.2f} | {best['rss']:.0f} | {best['cpu'] / base:.1f} |", flush=True)


if __name__ == "__main__":
    main()
