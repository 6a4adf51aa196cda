"""Hints of personal data in a text. Patterns with a check where one exists; a hint asks for a look, no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

_EMAIL = re.compile(r"[\w.+-]+@([\w-]+\.)+[A-Za-z]{2,}", re.ASCII)
_RESERVED = re.compile(
    r"@(.*\.)?(example\.(com|org|net)|[\w-]+\.(example|test|invalid|local))$", re.ASCII | re.IGNORECASE
)
_RESIDENT = re.compile(r"(?<!\d)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])-?[1-8]\d{6}(?!\d)", re.ASCII)
_MOBILE = re.compile(r"(?<![\d-])(?:\+82[ -]?|0)1[016789][ -]?\d{3,4}[ -]?\d{4}(?![\d-])", re.ASCII)
_CARD = re.compile(r"(?<![\d-])\d(?:[ -]?\d){12,18}(?![\d-])", re.ASCII)


def _luhn(text: str) -> bool:
    """ISO/IEC 7812-1 check digit; a run of one digit passes it and is no card."""
    digits = [int(one) for one in text if one.isdigit()]
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_birthday(text: str) -> bool:
    """The first six digits are a date: year, month, day. The century is not told, but a leap year is one in either."""
    try:
        return bool(date(2000 + int(text[:2]) % 4, int(text[2:4]), int(text[4:6])))
    except ValueError:
        return False


KINDS: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "e-mail address": (_EMAIL, lambda text: not _RESERVED.search(text)),
    "resident registration number": (_RESIDENT, _is_birthday),
    "mobile phone number": (_MOBILE, lambda _: True),
    "card number": (_CARD, _luhn),
}
KOREAN = {
    "e-mail address": "이메일 주소",
    "resident registration number": "주민등록번호",
    "mobile phone number": "휴대전화 번호",
    "card number": "카드 번호",
}


def kinds(text: str) -> list[str]:
    """Kinds of personal data that a text seems to hold; keys of `KINDS`."""
    return [name for name, (pattern, holds) in KINDS.items() if any(holds(m.group()) for m in pattern.finditer(text))]
