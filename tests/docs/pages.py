"""Pages as the tests read them. Four kinds of fenced blocks mean something:

    ```console      lines after `$ ` are commands, run in order in one shell; what stands below is their output;
                    `...` stands for any lines, and a command with nothing below it need only succeed
    ```csv NAME     (any language, one word more) a file that the reader saves under that name first
    ```diff NAME    a change to such a file
    ```sh, ```bash  commands that need a network, a daemon or a person: only their `eval-pipeline` lines are parsed

`VARIES` is what differs from run to run and is compared as one word.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"))
)
FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\$ ((?:[^\n]*\\\n)*[^\n]*)")
VARIES = (
    (re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}"), "EVALUATION"),
    (re.compile(r"\d+(\.\d+)?s$", re.MULTILINE), "SECONDS"),
    (re.compile(r"/\S+(?=/warehouse/)"), "PROJECT"),
)
END = "=== end of a command ==="


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the word after it, its text."""

    language: str
    name: str | None
    text: str


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    return [Block(language, name or None, body) for language, name, body in FENCE.findall(text(page))]


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    starts = [
        found for found in COMMAND.finditer(block.text) if found.start() == 0 or block.text[found.start() - 1] == "\n"
    ]
    for found, following in zip(starts, [*starts[1:], None], strict=True):
        yield found[1], block.text[found.end() : following.start() if following else None]


def eval_pipeline_lines(page: str) -> list[list[str]]:
    """Every `eval-pipeline` call of a page, in blocks and in prose, as words; placeholders stay words."""
    shown = [line for block in blocks(page) for line in re.sub(r"\\\n", " ", block.text).splitlines()]
    prose = re.findall(r"`(eval-pipeline [^`]+)`", FENCE.sub("", text(page)))
    calls = [re.search(r"(?:^|[$:=] |&& |bin/)(eval-pipeline .*)", line) for line in shown]
    return [
        shlex.split(part, comments=True)[1:]
        for call in (*prose, *(call[1] for call in calls if call))
        for part in re.split(r" (?:&&|\|\||;|>|\|) |; ", call)
        if part.startswith("eval-pipeline ")
    ]


def script(page: str) -> tuple[str, list[tuple[str, str]]]:
    """A page as one shell script that marks the end of every command, and the commands with the outputs shown."""
    lines, told, files = [], [], {}
    for block in blocks(page):
        if block.language == "diff" and block.name:
            before, after = (
                "".join(line[1:] for line in block.text.splitlines(True) if line[0] in (sign, " ")) for sign in "-+"
            )
            assert before in files[block.name], (block.name, before)
            files[block.name] = files[block.name].replace(before, after)
        elif block.name:
            files[block.name] = block.text
        if block.name:
            lines.append(f"cat > {block.name} <<'END OF FILE'\n{files[block.name]}END OF FILE")
        if block.language == "console":
            told += commands(block)
            lines += [f'{command}\ncode=$?; echo "{END}$code"; (exit $code)' for command, _ in commands(block)]
    return "\n".join(lines) + "\n", told


def programs(folder: Path) -> Path:
    """A new folder beside this one with the programs that pages call."""
    tools = folder.with_name(f"{folder.name}-tools")
    tools.mkdir()
    for name, module in (("eval-pipeline", "eval_pipeline.cli"), ("dagster", "dagster")):
        program = tools / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return tools


def run(page: str, folder: Path, environment: Mapping[str, str]) -> list[tuple[str, str, str, int]]:
    """Runs a page in an empty folder; of each command itself, the output shown, the real one, and the exit code."""
    tools = programs(folder)
    source, told = script(page)
    (tools / "page.sh").write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["bash", tools / "page.sh"], cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False, env=dict(environment) | {"PATH": f"{tools}:{environment['PATH']}"}, timeout=600,
    )  # fmt: skip
    printed = re.findall(rf"(.*?){END}(\d+)\n", done.stdout.replace(str(folder), "/home/kim"), re.DOTALL)
    assert len(printed) == len(told), done.stdout[-2000:]
    return [(*line, real, int(code)) for line, (real, code) in zip(told, printed, strict=True)]


def plain(output: str) -> str:
    """Output without what varies, without space at line ends, without repeated blank lines."""
    for pattern, word in VARIES:
        output = pattern.sub(word, output)
    lines = "\n".join(line.rstrip() for line in output.splitlines())
    return re.sub(r"\n\s*\n", "\n\n", lines).strip("\n")


def as_shown(real: str) -> str:
    """Real output as a page shows it."""
    lines = "\n".join(line.rstrip() for line in real.splitlines())
    return "\n" + re.sub(r"\n\n+", "\n\n", lines).strip("\n") + "\n"


def agrees(shown: str, real: str) -> bool:
    """Whether the real output is the one shown; a line `...` stands for any lines."""
    parts = re.split(r"^\.\.\.$", plain(shown), flags=re.MULTILINE)
    return re.fullmatch(".*".join(map(re.escape, parts)), plain(real), re.DOTALL) is not None


def refresh(page: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Writes the real outputs into a page wherever it shows others. Blocks with `...` are left to a person."""
    new = text(page)
    for command, shown, real, _ in run(page, folder, environment):
        if shown.strip() and not agrees(shown, real):
            assert "\n...\n" not in shown, (command, real)
            new = new.replace(f"$ {command}{shown}", f"$ {command}{as_shown(real)}", 1)
    (ROOT / page).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    import os
    import tempfile

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL_", "DAGSTER_", "GITHUB_"))}
    for one in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "page").mkdir()
            refresh(one, Path(place) / "page", kept | {"LANG": "C.UTF-8"})
