"""Both READMEs: their commands exist, their metric lists are the metrics, their output is the demo's."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

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


ITEMS = """user_input,reference,response
When does the shop open?,At 9 a.m.,It opens at 9 a.m.
Is there parking?,"Yes, 20 spaces.","Yes, there are 20 spaces."
How long is the warranty?,2 years.,It lasts 2 years.
"""


@pytest.mark.parametrize("page", ["README.md", pytest.param("README.ko.md", marks=pytest.mark.slow)])
def test_the_commands_for_one_s_own_data_run_as_they_stand(page, run_cli, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "dataset add" in block)
    lines = [line for line in block.splitlines() if line.startswith("eval-pipeline")]
    assert lines[0] == "eval-pipeline init my-evaluation && cd my-evaluation"
    assert lines[-1] == "eval-pipeline dev"
    assert run_cli("init", "my-evaluation", cwd=tmp_path).returncode == 0
    folder = tmp_path / "my-evaluation"
    (folder / "items.csv").write_text(ITEMS, encoding="utf-8")
    codes = {}
    for line in lines[1:-1]:
        words = shlex.split(line)[1:]
        done = run_cli(*words, cwd=folder)
        codes[words[0]] = done.returncode
        assert "Error" not in done.stderr, (line, done.stderr)
        if words[:2] == ["dataset", "add"]:  # "paste the lines it prints into evaluation.yaml"
            path, printed = folder / "evaluation.yaml", yaml.safe_load(done.stdout.split("evaluation.yaml:")[-1])
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
            for section, entries in printed.items():
                config[section] |= entries
            path.write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    assert codes == {"dataset": 0, "check": 0, "run": 0, "gate": 3, "query": 0}, "an untested judge blocks"
