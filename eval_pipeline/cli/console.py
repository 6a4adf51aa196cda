"""What every verb shares at the terminal: language, consoles, JSON, and how an error looks."""

from __future__ import annotations

import json
import locale
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.vocabulary import Language

if TYPE_CHECKING:
    from rich.console import Console

    from eval_pipeline.evaluation.project import Project


def _first_language(arguments: Sequence[str], environment: Mapping[str, str]) -> Language:
    """Language of help and messages: `--lang`, else EVAL_LANG, else the locale. Decided before verbs are declared."""
    for index, argument in enumerate(arguments):
        value = argument.removeprefix("--lang=") if argument.startswith("--lang=") else None
        if argument == "--lang" and index + 1 < len(arguments):
            value = arguments[index + 1]
        if value in {"ko", "en"}:
            return Language(value)
    chosen = (
        environment.get("EVAL_LANG")
        or environment.get("LC_ALL")
        or environment.get("LC_MESSAGES")
        or environment.get("LANG")
    )
    return Language.KO if (chosen or locale.getlocale()[0] or "").lower().startswith("ko") else Language.EN


WIDE = 160
LANGUAGE = _first_language(sys.argv[1:], os.environ)


def t(english: str, korean: str) -> str:
    """The text in the language of this process."""
    return korean if LANGUAGE == Language.KO else english


Lang = Annotated[Language, typer.Option("--lang", help=t("Language: ko or en", "언어: ko 또는 en"), show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help=t("Machine-readable output", "기계가 읽는 출력"))]


def out() -> Console:
    """The console for results. Width follows the terminal; 160 columns when there is none."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """The console for progress and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One plain line of result, markup and control characters inert."""
    from rich.text import Text

    out().print(Text(printable(text)))


def printable(text: str) -> str:
    """Text without terminal control sequences: everything unprintable but newline and tab becomes `?`."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def fail(error: EvalPipelineError) -> int:
    """Prints one error and returns its exit code."""
    from rich.text import Text

    err().print(Text.assemble((t("Error: ", "오류: "), "bold red"), printable(error.message(LANGUAGE))))
    return error.exit_code


def emit(value: object) -> None:
    """Prints a value as JSON: literal Hangul, no NaN."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain, allow_nan=False) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def project() -> Project:
    """The project at hand, with `.env` of its folder read under the environment's own values."""
    from eval_pipeline.evaluation.project import Project

    found = Project.find(Path.cwd(), os.environ)
    env_file = found.root / ".env"
    if not env_file.is_file():
        return found
    from dotenv import dotenv_values

    values = {key: value for key, value in dotenv_values(env_file).items() if value is not None}
    return Project(found.root, found.config, values | dict(os.environ))
