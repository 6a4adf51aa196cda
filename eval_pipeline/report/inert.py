"""Makes text of strangers harmless to look at: what is invisible or reorders a line is shown by its code point.

Escaping for one format (HTML, Markdown, CSV, workflow commands) is the business of the module that writes it.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: object) -> str:
    """The text with control, zero-width, bidirectional and tag characters as `⟨U+202E⟩`. Newline and tab stay.

    A carriage return before a newline is dropped. Null is an empty string.
    """
    if text is None:
        return ""
    return _UNSEEN.sub(_code_point, str(text).replace("\r\n", "\n"))


def line(text: object, limit: int = 0) -> str:
    """`visible` on one line, cut at `limit` characters when that is not 0."""
    flat = " ".join(visible(text).split())
    return flat if not limit or len(flat) <= limit else flat[: limit - 1] + "…"


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"
