"""Prompt texts as versioned data, and their loader. Rendering is `fencing`'s; what to ask is a metric's.

A prompt is a folder `<id>/` with `v<N>.en.yaml`, `v<N>.ko.yaml` and `CHANGES.md`. The highest version is in use. A
released text never changes: `pins.toml` holds its sha256, and those of what a judge is told about an unusable reply.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
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
def _reasks(home: Path) -> dict[str, dict[str, str]]:
    path = home / "reask.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}


def reask(outcome: Outcome, language: Language) -> str:
    """What a judge is told about an unusable reply; holds `{{ grades }}`."""
    return _reasks(HOME)[outcome.value][language.value]


def reasks_sha256() -> str:
    """Hash of all that a judge is told about unusable replies."""
    return hashlib.sha256(json.dumps(_reasks(HOME), sort_keys=True).encode()).hexdigest()


def all_prompts() -> list[Prompt]:
    """Every version of every prompt of the package, for checks and docs."""
    paths = sorted(HOME.glob("*/v*.yaml"))
    return [_read(path.parent.name, Language(path.suffixes[-2].removeprefix(".")), path) for path in paths]


def texts_in_use() -> dict[tuple[str, str], str]:
    """sha256 of every text a judge may be sent: prompts by id and `v<N>.<language>`, re-asks by outcome and language."""
    found = {(one.template_id, f"v{one.version}.{one.language.value}"): one.sha256 for one in all_prompts()}
    for outcome, by_language in _reasks(HOME).items():
        for language, text in by_language.items():
            found["reask", f"{outcome}.{language}"] = text_sha256("", text)
    return found


def pinned_texts() -> dict[tuple[str, str], str]:
    """What `pins.toml` holds, in the same form."""
    pins = tomllib.loads((HOME / "pins.toml").read_text(encoding="utf-8")) if (HOME / "pins.toml").is_file() else {}
    return {(template_id, name): sha for template_id, names in pins.items() for name, sha in names.items()}


def broken_pins() -> list[str]:
    """Texts that are not the released ones, that were never pinned, or are gone. Empty when all is well."""
    used, pinned = texts_in_use(), pinned_texts()
    return ["/".join(key) for key in sorted(used | pinned) if used.get(key) != pinned.get(key)]
