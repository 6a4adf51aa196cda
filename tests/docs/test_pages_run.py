"""Every command and every output of README, tutorial and docs is run in a fresh folder and compared."""

import difflib
import json
import re
import subprocess
import sys

import pages
import pytest

RUNNABLE = [page for page in pages.PAGES if any(block.language == "console" for block in pages.blocks(page))]


# Korean pages show what the English ones show, so only the whole matrix runs both.
MARKED = [pytest.param(page, marks=pytest.mark.slow if page.endswith(".ko.md") else ()) for page in RUNNABLE]


@pytest.mark.parametrize("page", MARKED)
def test_what_the_page_shows_is_what_happens(page, tmp_path, clean_environment):
    for command, shown, real, code in pages.run(page, tmp_path, clean_environment()):
        if not shown.strip():
            assert code == 0, (command, real)
        elif not pages.agrees(shown, real):
            told, happened = pages.plain(shown).splitlines(), pages.plain(real).splitlines()
            pytest.fail(
                f"$ {command}\n" + "\n".join(difflib.unified_diff(told, happened, "shown", "real", lineterm=""))
            )


PARSE = """
import json, sys
import typer
from eval_pipeline.cli.app import command
def problem(words):
    found, words = command(), [word.strip("[]") for word in words if word != "..."]
    while words and hasattr(found, "commands") and not words[0].startswith("-"):
        if words[0] not in found.commands:
            return f"no verb {words[0]}"
        found = found.commands[words.pop(0)]
    if "--show-completion" in words:  # answers before the rest is looked at
        return None
    context = typer.Context(found, help_option_names=["-h", "--help"])
    try:
        *_, left, order = found.make_parser(context).parse_args(list(words))
    except typer.TyperException as error:
        return error.format_message()
    return f"more than it takes: {left}" if left else None
lines = json.load(sys.stdin)
json.dump([told for line in lines if (told := problem(line)) and (told := [line, told])], sys.stdout)
"""


WRONG = [["run", "--nope"], ["label", "nope"], ["show"] + ["a"] * 3]
"""Calls that must not parse, so that the parser is known to look."""


def alternatives(line):
    """`batch submit|poll` is two calls."""
    at = next(
        (index for index, word in enumerate(line) if re.fullmatch(r"[a-z]+(\|[a-z]+)+", word) and index < 2), None
    )
    return [line] if at is None else [[*line[:at], one, *line[at + 1 :]] for one in line[at].split("|")]


def test_every_call_shown_anywhere_parses(clean_environment):
    shown = [
        (page, line) for page in pages.PAGES for call in pages.eval_pipeline_lines(page) for line in alternatives(call)
    ]
    assert len(shown) > 60
    done = subprocess.run([sys.executable, "-c", PARSE], input=json.dumps([line for _, line in shown] + WRONG), capture_output=True,
                          text=True, env=clean_environment(), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line for line, _ in json.loads(done.stdout)] == WRONG
