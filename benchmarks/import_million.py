"""One million items (about 1 GB of JSONL) imported and versioned, next to a plain polars read-and-hash of the same file.

    python benchmarks/import_million.py [ROWS]

Prints seconds of each and the peak memory of the import's own process. The bound is 2 GB.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import Progress

ROWS = 1_000_000


def write(path: Path, count: int) -> None:
    draw = random.Random(1)
    words = [f"word{n}" for n in range(5_000)] + ["환불은", "며칠", "안에", "되나요"]
    passages = [" ".join(draw.choices(words, k=80)) for _ in range(2_000)]
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            question = " ".join(draw.choices(words, k=12))
            row = {"item_id": f"q{draw.getrandbits(32):010}-{n}", "user_input": question, "reference": question[::-1], "stratum": f"s{n % 5}",
                   "reference_contexts": [passages[n % 2_000]]}  # fmt: skip
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def bring_in(path: Path) -> None:
    """Runs in a process of its own, so that its peak memory is its own."""
    from eval_pipeline.intake import adding

    started = time.perf_counter()
    with Progress(transient=True) as bar:
        task = bar.add_task("import", total=None)
        adding.add(path.parent / "dataset", path, "v1", "a million", None, datetime.now(UTC), {},
                   progress=lambda done, total: bar.update(task, completed=done, total=total))  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"import and version   {time.perf_counter() - started:6.1f} s, peak {peak:.2f} GB (bound 2 GB)", flush=True)
    if peak > 2:
        sys.exit("over the bound")


def read_and_hash(path: Path) -> None:
    import polars as pl

    started = time.perf_counter()
    pl.read_ndjson(path).hash_rows()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"polars read and hash {time.perf_counter() - started:6.1f} s, peak {peak:.2f} GB", flush=True)


def main() -> None:
    if len(sys.argv) > 2:
        {"import": bring_in, "polars": read_and_hash}[sys.argv[1]](Path(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        write(path, count)
        print(f"{count:,} rows, {path.stat().st_size / 1e9:.2f} GB", flush=True)
        for what in ("import", "polars"):
            subprocess.run([sys.executable, __file__, what, str(path)], check=True)


if __name__ == "__main__":
    main()
