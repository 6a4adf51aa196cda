"""docs/scaling.md: its settings are read, its run configurations are accepted, its arithmetic comes out."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eval_pipeline.llm.prices import BATCH_SHARE, table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
VALIDATE = """
import json, sys
import dagster as dg
from eval_pipeline.definitions import build_definitions
job = build_definitions().resolve_job_def("warm_ledger")
for block in json.loads(sys.argv[1]):
    dg.validate_run_config(job, block)
"""
EXECUTORS = {
    "in_process": lambda block: "execution" not in block,
    "multiprocess": lambda block: set(block.get("execution", {}).get("config", {})) == {"max_concurrent"},
    "dask": lambda block: "cluster" in block.get("execution", {}).get("config", {}),
    "celery": lambda block: "broker" in block.get("execution", {}).get("config", {}),
    "kubernetes": lambda block: "job_image" in block.get("execution", {}).get("config", {}),
}
NEEDS = {"dask": "dagster_dask", "celery": "dagster_celery", "kubernetes": "dagster_k8s"}


def test_every_block_is_of_one_executor():
    assert all(sum(fits(block) for fits in EXECUTORS.values()) == 1 for block in BLOCKS)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_run_configurations_shown_are_accepted(executor, clean_environment):
    if executor in NEEDS and importlib.util.find_spec(NEEDS[executor]) is None:
        pytest.skip(f"{NEEDS[executor]} is not installed")
    shown = [block for block in BLOCKS if EXECUTORS[executor](block)]
    assert shown
    done = subprocess.run([sys.executable, "-c", VALIDATE, json.dumps(shown)], cwd=ROOT, capture_output=True, text=True,
                          env=clean_environment(EVAL_EXECUTOR=executor), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_settings_are_read_somewhere():
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "eval_pipeline").rglob("*.py"))
    named = set(re.findall(r"^\| `([A-Z_]+)`", PAGE, re.MULTILINE))
    assert len(named) >= 6
    assert all(f'"{name}"' in code for name in named)


def test_the_extras_and_commands_shown_exist(run_cli, tmp_path):
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in set(re.findall(r"eval-pipeline\[(\w+)\]", PAGE)):
        assert f"\n{extra} = [" in extras
    assert "--resume" in run_cli("run", "--help", cwd=tmp_path).stdout
    for script in re.findall(r"python (benchmarks/\w+\.py)", PAGE):
        assert (ROOT / script).is_file()


def test_the_price_shown_is_that_of_the_price_table():
    shown = re.search(r"([\d,]+) prompt tokens and (\d+) reply tokens", PAGE).groups()
    prompt, reply = (int(number.replace(",", "")) for number in shown)
    price = table()["models"]["gpt-4o-mini-2024-07-18"]
    whole = 10 * (prompt * price["input"] + reply * price["output"])  # 10 M questions; prices are of a million tokens
    assert f"| ${whole:,.0f}; by batch ${whole * BATCH_SHARE:,.0f} |" in PAGE
    assert f"prices.yaml` ({table()['dated']})" in PAGE
