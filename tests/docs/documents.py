"""Runs what a page shows: files are written, commands run, outputs compared.

In a page, a block ```` ```csv answers.csv ```` is a file, and a block ```` ```console ```` holds commands after `$ ` with
what they print. `…` stands for any lines. `cd` and `echo $?` work as in a shell. What no two runs share (ids, dates,
durations, folders) is alike for the comparison. `EVAL_WRITE_DOCS=1` writes what was printed into the page instead.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALIKE = [
    (re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}"), "ID"),
    (re.compile(r"\b\d+(?:\.\d+)?s\b|\b\d+m\d+s\b"), "TIME"),
    (re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[\d.]*(?:\+00:00|Z)?"), "WHEN"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"─+"), "─"),
]


def alike(text):
    """Lines as they are compared."""
    for pattern, word in ALIKE:
        text = pattern.sub(word, text)
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def matches(shown, printed):
    """Whether the shown lines are the printed ones, `…` standing for any number of them."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


@dataclass
class Reader:
    """Somebody who types what a page says, beginning in an empty folder."""

    run_cli: object
    folder: Path
    language: str
    exit_code: int = 0
    environment: dict = field(default_factory=dict)

    def __post_init__(self):
        self.root = self.folder

    def type(self, command):
        """What the terminal shows after one command."""
        if command == "echo $?":
            return str(self.exit_code)
        words = shlex.split(command)
        if words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
            return ""
        assert words[0] == "eval-pipeline", f"a page shows a command that nobody runs: {command}"
        done = self.run_cli(*words[1:], cwd=self.folder, EVAL_LANG=self.language, **self.environment)
        self.exit_code = done.returncode
        assert self.exit_code != 70, f"a defect: {done.stderr}"
        return (done.stdout + done.stderr).replace(f"{self.root}/", "")

    def console(self, block):
        """The block as it would be shown, and what of it is not as printed."""
        written, wrong = [], []
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            printed = self.type(command)
            if matches(alike(shown), alike(printed)):
                written.append(f"$ {part}")
                continue
            wrong.append(f"$ {command}\n--- shown\n{shown}\n--- printed\n{printed}")
            tidy = "\n".join(line.rstrip() for line in printed.strip().splitlines() if line.strip())
            written.append(f"$ {command}\n{tidy}\n" if tidy else f"$ {command}\n")
        return "".join(written), wrong

    def read(self, page, is_written):
        """Follows the whole page; returns what is not as shown."""
        wrong = []

        def follow(found):
            kind, name, text = found.groups()
            if name:
                target = self.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            if kind != "console":
                return found.group(0)
            block, differing = self.console(text)
            wrong.extend(differing)
            return f"```console\n{block}```"

        rewritten = BLOCK.sub(follow, page.read_text(encoding="utf-8"))
        if is_written:
            page.write_text(rewritten, encoding="utf-8")
        return wrong
