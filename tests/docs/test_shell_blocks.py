"""The shell blocks of the pages on labels, operations and the skill are run as they stand, in a project that has what they name."""

import csv
import json
import re
import shlex
import subprocess

import pages
import pytest
from openpyxl import load_workbook

KEY = "sk-recognisable-0123456789"
ELSEWHERE = ("pip ", "docker ", "systemctl ")
"""Programs of the machine, not ours."""
UNPROVEN = {"gate": {3}, "calibrate": {1, 3}}
"""Exit codes while the judge, which grades by chance here, is unproven; everything else ends with 0."""


@pytest.fixture
def shop(judged_with_labels, loopback):
    """Two judges on the loopback server, `old_judge` being the default, and a system `rag`; one evaluation exists."""
    path = judged_with_labels / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\bembedded:", "old_judge:", text).replace("default_judge: embedded", "default_judge: old_judge")
    text = re.sub(r"\baurora:", "rag:", text).replace("default_system: aurora", "default_system: rag")
    other = f"""  azure_mini:
    provider: openai
    model: judge-2026-01-01
    base_url: {loopback.base_url}
    api_key_env: JUDGE_KEY
default_judge:"""
    path.write_text(text.replace("default_judge:", other), encoding="utf-8")
    return judged_with_labels


@pytest.fixture
def shell(shop, clean_environment):
    """Runs one line in the project's folder."""
    environment = clean_environment(JUDGE_KEY=KEY, DAGSTER_HOME=str(shop / "dagster_home"), EVAL_PROJECT=str(shop))
    environment |= {"PATH": f"{pages.programs(shop)}:{environment['PATH']}"}

    def run(line):
        return subprocess.run(["bash", "-c", line], cwd=shop, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=600)  # fmt: skip

    return run


def lines(page):
    """Commands of a page's shell blocks, in order, without those of the machine."""
    found = [
        line for block in pages.blocks(page) if block.language in {"sh", "bash"} for line in block.text.splitlines()
    ]
    return [line for line in found if line and not line.startswith(ELSEWHERE)]


def fill(folder, wanted, annotator):
    """What a person makes of the sheet that was handed out last: the file that the page's next line imports."""
    sheet = next(path for path in (folder / wanted, folder / f"sheet-{annotator}.html") if path.exists())
    if sheet.suffix == ".html":
        text = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', sheet.read_text("utf-8"), re.DOTALL)[1]
        data = json.loads(text)
        labels = [
            {"content_sha256": task["content_sha256"], "score": 4 if number % 3 and annotator == "kim" else 0}
            for number, task in enumerate(data["tasks"])
        ]
        (folder / wanted).write_text(json.dumps({"sheet": data["sheet"], "labels": labels}), encoding="utf-8")
    elif sheet.suffix == ".csv":
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(row | {"score": "2"} for row in rows)
    else:
        book = load_workbook(sheet)
        column = [cell.value for cell in book["labels"][1]].index("score") + 1
        for number in range(2, book["labels"].max_row + 1):
            book["labels"].cell(number, column).value = number % 3 * 2
        book.save(sheet)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/labels.md", "docs/operations.md", "docs/skill-eval-architect.md"])
def test_the_shell_blocks_run_as_they_stand(page, shop, shell):
    assert shell("eval-pipeline run").returncode == 0
    tag = "eval-pipeline dataset add helpdesk datasets/helpdesk/items.jsonl --tag v3 --message third"
    assert shell(tag).returncode == 0
    shown = lines(page)
    assert len(shown) >= 7
    for line in shown:
        words = shlex.split(line, comments=True)
        if words[1:3] == ["label", "import"]:
            fill(shop, words[3], words[-1])
        done = shell(line)
        assert "Error" not in done.stderr, (line, done.stderr)
        assert done.returncode in {0} | UNPROVEN.get(words[1], set()), (
            line,
            done.stdout[-800:],
            done.stderr[-800:],
        )
