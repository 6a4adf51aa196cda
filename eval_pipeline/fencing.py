"""Puts hostile texts into prompts as data: behind a boundary their author could not have known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from eval_pipeline.chat import Message
from eval_pipeline.prompts import Prompt


def boundary(template_id: str, texts: Mapping[str, str]) -> str:
    """A 16-digit boundary derived from template and texts, absent from the texts.

    Derived, not drawn: the same question renders to the same prompt and is found in the ledger again.
    """
    joined = "\x00".join((template_id, *(f"{name}\x01{text}" for name, text in texts.items())))
    for counter in range(1_000):
        digits = hashlib.sha256(f"{counter}\x00{joined}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if digits not in joined:
            return digits
    raise AssertionError("a text cannot hold a thousand of its own hashes")


def fence(name: str, text: str, mark: str) -> str:
    """One text between its boundary lines."""
    return f"<<{mark} {name}>>\n{text}\n<</{mark} {name}>>"


def render(prompt: Prompt, inputs: Mapping[str, str], settings: Mapping[str, str] | None = None) -> list[Message]:
    """The messages of one question.

    Args:
        prompt: the template.
        inputs: hostile texts by variable; each is fenced.
        settings: trusted texts of the configuration (criteria, rubric); put in as they are.

    Raises:
        KeyError: a variable of the template has no text.
    """
    used = {name: inputs[name] for name in prompt.variables}
    mark = boundary(prompt.template_id, used)
    values = {name: fence(name, text, mark) for name, text in used.items()}
    values |= {f"settings.{name}": (settings or {})[name] for name in prompt.settings}
    user = "".join(values[piece] if is_variable else piece for is_variable, piece in prompt.pieces)
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}]
