"""Both READMEs: their commands exist, their metric lists are the metrics, their output is the demo's."""

import json
import re
from pathlib import Path

import pytest

from eval_pipeline.metrics import available, declare
from eval_pipeline.vocabulary import Language

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": Language.EN, "README.ko.md": Language.KO}


@pytest.mark.parametrize("page", PAGES)
def test_the_metric_table_is_the_metrics(page):
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    known = {}
    for name in available():
        try:
            known[name] = declare(name).summary[PAGES[page]]
        except TypeError:  # needs options, so it has no default form to list
            continue
    assert rows == known


@pytest.mark.parametrize("page", PAGES)
def test_every_command_shown_exists(page, run_cli, tmp_path):
    verbs = set(re.findall(r"^eval-pipeline (\w+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    assert len(verbs) >= 7
    for verb in sorted(verbs):
        assert run_cli(verb, "--help", cwd=tmp_path).returncode == 0, verb


@pytest.mark.parametrize("page", PAGES)
def test_the_make_targets_shown_exist(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([\w-]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)) <= targets


def test_the_output_shown_is_the_demo_s(finished):
    _, printed = finished
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in printed["summaries"]:
        if row["stratum"] == "all":
            line = next(line for line in shown.splitlines() if line.strip().startswith(row["metric"]))
            assert f"{row['mean']['value']:.3f}".lstrip("0") in line
            assert str(row["scored_count"]) in line


def test_the_calls_shown_are_those_a_first_demo_makes(finished, run_cli):
    folder, _ = finished
    sql = "select call_count, cached_count from evaluations order by started_at limit 1"
    (first,) = json.loads(run_cli("query", sql, "--format", "json", cwd=folder).stdout)
    shown = f"{first['call_count']:,} calls, {first['cached_count']:,} from ledger"
    assert shown in (ROOT / "README.md").read_text(encoding="utf-8")
