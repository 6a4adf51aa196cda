"""Prompt texts as versioned data, and their loader. Rendering is `fencing`'s; what to ask is a metric's.

A prompt is a folder `<id>/` with `v<N>.en.yaml`, `v<N>.ko.yaml` and `CHANGES.md`. The highest version is in use. A
released text never changes: `pins.toml` holds its sha256.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from eval_pipeline.errors import PromptInvalid
from eval_pipeline.vocabulary import Language, Outcome

HOME = Path(__file__).parent
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_folders: list[Path] = []


@dataclass(frozen=True, slots=True)
class Prompt:
    """One template in one language.

    Attributes:
        pieces: the user message cut at its variables: `(is_variable, text or name)`.
        variables: names of hostile texts, which get fenced.
        settings: names of trusted texts (written `{{ settings.name }}`).
        sha256: hash of system and user text.
    """

    template_id: str
    version: int
    language: Language
    system: str
    user: str
    pieces: tuple[tuple[bool, str], ...]
    variables: tuple[str, ...]
    settings: tuple[str, ...]
    sha256: str


def add_folder(folder: Path) -> None:
    """Also looks for prompts in this folder, from now on; for metrics that live outside the package."""
    if folder not in _folders:
        _folders.append(folder)
        load.cache_clear()


@cache
def load(template_id: str, language: Language) -> Prompt:
    """The newest version of a prompt in one language.

    Raises:
        PromptInvalid: there is none, or it is not a prompt.
    """
    for home in (HOME, *_folders):
        versions = sorted((home / template_id).glob(f"v[0-9]*.{Language(language).value}.yaml"), key=_version)
        if versions:
            return _read(template_id, language, versions[-1])
    raise PromptInvalid(prompt=f"{template_id} ({language.value})", reason="there is no such prompt")


def _version(path: Path) -> int:
    return int(re.match(r"v(\d+)\.", path.name).group(1))  # pyright: ignore[reportOptionalMemberAccess]


def _read(template_id: str, language: Language, path: Path) -> Prompt:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        system, user = str(raw["system"]).strip(), str(raw["user"]).strip()
    except (yaml.YAMLError, KeyError, TypeError, OSError, UnicodeDecodeError) as error:
        raise PromptInvalid(
            prompt=f"{template_id}/{path.name}", reason=f"needs `system` and `user`: {error}"
        ) from error
    parts = _VARIABLE.split(user)
    pieces = tuple((bool(index % 2), part) for index, part in enumerate(parts) if part)
    names = tuple(dict.fromkeys(part for is_variable, part in pieces if is_variable))
    return Prompt(
        template_id=template_id,
        version=_version(path),
        language=language,
        system=system,
        user=user,
        pieces=pieces,
        variables=tuple(name for name in names if not name.startswith("settings.")),
        settings=tuple(name.removeprefix("settings.") for name in names if name.startswith("settings.")),
        sha256=text_sha256(system, user),
    )


def text_sha256(system: str, user: str) -> str:
    """Hash of a prompt's text, which its pin and its verdicts carry."""
    return hashlib.sha256(f"{system}\x00{user}".encode()).hexdigest()


@cache
def _reasks() -> dict[str, dict[str, str]]:
    return yaml.safe_load((HOME / "reask.yaml").read_text(encoding="utf-8"))


def reask(outcome: Outcome, language: Language) -> str:
    """What a judge is told about an unusable reply; holds `{{ grades }}`."""
    return _reasks()[outcome.value][language.value]


def all_prompts() -> list[Prompt]:
    """Every version of every prompt of the package, for checks and docs."""
    paths = sorted(HOME.glob("*/v*.yaml"))
    return [_read(path.parent.name, Language(path.suffixes[-2].removeprefix(".")), path) for path in paths]


def broken_pins(prompts: Sequence[Prompt] | None = None) -> list[str]:
    """Prompts whose text is not the one that was released, that were never pinned, or are gone. Empty when all is well."""
    pins = tomllib.loads((HOME / "pins.toml").read_text(encoding="utf-8"))
    problems = []
    for prompt in prompts if prompts is not None else all_prompts():
        pinned = pins.get(prompt.template_id, {}).get(f"v{prompt.version}.{prompt.language.value}")
        if pinned != prompt.sha256:
            problems.append(f"{prompt.template_id}/v{prompt.version}.{prompt.language.value}")
    if prompts is None:
        pinned_files = {f"{template_id}/{name}" for template_id, names in pins.items() for name in names}
        problems += sorted(name for name in pinned_files if not (HOME / f"{name}.yaml").is_file())
    return problems
