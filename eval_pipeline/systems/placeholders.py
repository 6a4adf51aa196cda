"""`{{ user_input }}` and its like in a request template, filled in as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from eval_pipeline.systems.response import GIVEN

PLACEHOLDER = re.compile(r"\{\{\s*(" + "|".join(GIVEN) + r")\s*\}\}")


def fill(template: Any, given: Mapping[str, str], escape: Callable[[str], str] = str) -> Any:
    """The template with the placeholders inside its texts replaced, in one pass: what is filled in is not read again.

    The template is data, not JSON text, so no question can break out of its place.

    Args:
        template: text, number, list or mapping, as read from `evaluation.yaml`. Keys of mappings stay as they are.
        given: texts by placeholder.
        escape: applied to each text that is filled in.
    """
    if isinstance(template, Mapping):
        return {key: fill(value, given, escape) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, given, escape) for value in template]
    if not isinstance(template, str):
        return template
    return PLACEHOLDER.sub(lambda found: escape(given[found.group(1)]), template)
