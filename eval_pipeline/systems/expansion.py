"""`${NAME}` in a system's configuration, and the care that no secret reaches a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.response import short

NAME = re.compile(r"\$\{(\w+)\}")
SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
SHORTEST_SECRET = 4


class Expansion:
    """Replaces `${NAME}` from the given environment; remembers what it put in, to blank it out of messages.

    Args:
        system: name of the system, for messages.
        environment: the variables; one that is empty counts as not set.
    """

    def __init__(self, system: str, environment: Mapping[str, str]) -> None:
        self._system, self._environment = system, environment
        self._secrets = {value for name, value in environment.items() if SECRET_NAME.search(name)}
        self._missing: dict[str, None] = {}

    def fill(self, template: Any) -> Any:
        """A text, or the texts inside lists and mappings, with each `${NAME}` replaced. Call `refuse_missing` after."""
        if isinstance(template, Mapping):
            return {key: self.fill(value) for key, value in template.items()}
        if isinstance(template, list | tuple):
            return [self.fill(value) for value in template]
        return NAME.sub(self._value, template) if isinstance(template, str) else template

    def refuse_missing(self) -> None:
        """Raises one error with all names that were not set.

        Raises:
            SystemMisconfigured: at least one was not.
        """
        if self._missing:
            names = ", ".join(self._missing)
            reason = f"environment variable(s) {names} not set; set them, or put them into .env"
            raise SystemMisconfigured(system=self._system, reason=reason)

    def safe(self, text: object) -> str:
        """Foreign text as one short line, without the values that came from the environment."""
        whole = str(text)
        for secret in sorted(self._secrets, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                whole = whole.replace(secret, "***")
        return short(whole)

    def _value(self, found: re.Match[str]) -> str:
        value = self._environment.get(found.group(1), "")
        if not value:
            self._missing[found.group(1)] = None
        self._secrets.add(value)
        return value
