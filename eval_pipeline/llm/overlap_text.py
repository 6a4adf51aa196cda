"""Text as comparable tokens, for the embedded judge: dates, numbers and times by value, words without particles.

Pure and deterministic. How two texts are compared is `overlap`'s business; no grade is known here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.llm.overlap_words import (
    COUNTERS,
    ENGLISH_NUMBERS,
    KOREAN_DAYS,
    KOREAN_NUMBERS,
    MONTH,
    MONTHS,
    NEGATORS,
    ONES,
    SAFE_AFTER_ONE,
    SCALES,
    STOP_WORDS,
    SUFFIXES,
    TENS,
    WEEKDAYS,
)

_PATTERN = re.compile(
    rf"""
      (?P<iso_y>\d{{4}})\s?(?:[-./]|년)\s?(?P<iso_m>\d{{1,2}})\s?(?:[-./]|월)\s?(?P<iso_d>\d{{1,2}})(?!\d)일?
    | (?P<ko_m>\d{{1,2}})월\s?(?P<ko_d>\d{{1,2}})일
    | (?<!\d)(?P<km_m>\d{{1,2}})월(?!요일)
    | (?P<us_m>\b(?:{MONTH}))\b\.?\s(?P<us_d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<us_y>\d{{4}})\b)?
    | \b(?P<gb_d>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<gb_m>{MONTH})\b\.?(?:,?\s(?P<gb_y>\d{{4}})\b)?
    | \b(?P<my_m>{MONTH})\b\.?,?\s(?P<my_y>\d{{4}})\b
    | (?P<half>오전|오후|밤|저녁|새벽)?\s?(?P<ko_h>\d{{1,2}})시(?!간)(?:\s?(?P<ko_min>\d{{1,2}})분)?
    | (?<![\d.])(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?!\d)(?:\s?(?P<ampm>am|pm)\b)?
    | (?P<number>\d[\d,]*(?:\.\d+)?)\s?(?P<scale>천|만|억|thousand\b|million\b|billion\b)?(?:st\b|nd\b|rd\b|th\b)?
    | \b(?P<tens>{"|".join(TENS)})-(?P<ones>{"|".join(ONES[1:10])})\b
    | (?<![가-힣])(?P<native>{"|".join(sorted(KOREAN_NUMBERS, key=len, reverse=True))})(?=\s?(?:{COUNTERS}))
    | (?<![가-힣])(?P<days>{"|".join(KOREAN_DAYS)})
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)
    | (?P<stop>[.!?;。\n]+(?=\s|$)|\n)
    | (?P<comma>[,:()])
    """,
    re.VERBOSE | re.IGNORECASE,
)

_NO_MORE = re.compile(r"(?:no|not)\s(?:later|more|less|fewer|larger|longer|only|bigger|just)\b", re.IGNORECASE)
_KOREAN_NEGATION = re.compile(r"^(?:없|않|아니|아닙|못|안$|말고|불가)")


@dataclass(frozen=True, slots=True)
class Token:
    """One comparable token.

    Attributes:
        key: the form compared; numbers start with "#", so that they never equal a word.
        kind: "number", "name" (capitalised inside a sentence) or "word".
        unit: for numbers: year, month, day, time or plain; else empty.
        is_negated: whether a negation governs it.
        clause: index of the clause (between commas) it stands in.
        is_stop: whether it carries no content of its own.
    """

    key: str
    kind: str
    unit: str = ""
    is_negated: bool = False
    clause: int = 0
    is_stop: bool = False


def clean(text: str) -> str:
    """NFKC with invisible format characters and Latin accents removed."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    if visible.isascii():
        return visible
    stripped = "".join(c for c in unicodedata.normalize("NFD", visible) if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", stripped)


def is_hangul(word: str) -> bool:
    """Whether the word ends in a Hangul syllable."""
    return "가" <= word[-1:] <= "힣"


def _open(root: str, suffix: str) -> str:
    """A Hangul root before contraction: 바꿉(니다), 바꾼(다) -> 바꾸; 열려 -> 열리; 세워졌(습니다) -> 세워지."""
    offset = ord(root[-1]) - 0xAC00
    vowel, final = offset // 28 % 21, offset % 28
    if final == {"니다": 17, "니까": 17, "다": 4}.get(suffix) or (final == 20 and suffix):
        offset, final = offset - final, 0
    if final == 0 and vowel == 6 and len(root) > 1:
        offset += (20 - 6) * 28
    return root[:-1] + chr(0xAC00 + offset)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The word without Korean particles and endings, or without an English plural or possessive."""
    if is_hangul(word):
        for suffix in SUFFIXES:
            rest = len(word) - len(suffix)
            if word.endswith(suffix) and rest >= (1 if suffix in SAFE_AFTER_ONE else 2):
                return _open(word[:rest], suffix)
        return _open(word, "")
    word = re.sub(r"['’]s?$", "", word.lower())
    word = re.sub(r"['’]s$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _numeric(value: float, unit: str, clause: int) -> Token:
    return Token(f"#{value:g}" if abs(value) < 1e5 else f"#{value:.0f}", "number", unit, False, clause)


def _date(year: str | None, month: str | None, day: str | None, clause: int) -> list[Token]:
    out = []
    if year:
        out.append(_numeric(int(year), "year", clause))
    if month:
        index = int(month) if month.isdigit() else 1 + [name[:3] for name in MONTHS].index(month[:3].lower())
        out.append(Token(f"#month{index}", "number", "month", False, clause))
    if day:
        out.append(_numeric(int(day), "day", clause))
    return out


def _time(hour: int, minute: int, afternoon: bool, clause: int) -> Token:
    hour += 12 if afternoon and hour < 12 else 0
    return Token(f"#{hour}:{minute:02d}", "number", "time", False, clause)


def _read(match: re.Match[str], clause: int) -> list[Token]:
    """The tokens of a match that is a number, a date or a time."""
    part = match.groupdict()
    for prefix in ("iso", "ko", "km", "us", "gb", "my"):
        if part.get(f"{prefix}_m"):
            return _date(part.get(f"{prefix}_y"), part[f"{prefix}_m"], part.get(f"{prefix}_d"), clause)
    if part["ko_h"]:
        return [_time(int(part["ko_h"]), int(part["ko_min"] or 0), part["half"] in ("오후", "밤", "저녁"), clause)]
    if part["hour"]:
        return [_time(int(part["hour"]), int(part["minute"]), (part["ampm"] or "").lower() == "pm", clause)]
    if part["number"]:
        digits = part["number"].replace(",", "")
        value = float(digits[:15]) * SCALES.get((part["scale"] or "").lower(), 1)
        is_year = len(digits) == 4 and digits.isdigit() and "," not in part["number"] and 1000 <= value <= 2100
        return [_numeric(value, "year" if is_year and not part["scale"] else "plain", clause)]
    if part["tens"]:
        return [_numeric(TENS[part["tens"].lower()] + ENGLISH_NUMBERS[part["ones"].lower()], "plain", clause)]
    if part["native"]:
        return [_numeric(KOREAN_NUMBERS[part["native"]], "plain", clause)]
    return [_numeric(KOREAN_DAYS[part["days"]], "plain", clause)] if part["days"] else []


def _word(raw: str, clause: int, is_start: bool, is_negated: bool) -> Token:
    lowered = raw.lower()
    if lowered in ENGLISH_NUMBERS and lowered != "one":
        return Token(f"#{ENGLISH_NUMBERS[lowered]}", "number", "plain", False, clause)
    key = stem(raw)
    if key in WEEKDAYS:
        return Token(f"#weekday{WEEKDAYS[key]}", "number", "weekday", False, clause)
    is_stop = lowered in STOP_WORDS or key in STOP_WORDS or lowered in NEGATORS
    if is_hangul(raw):
        is_stop = is_stop or bool(_KOREAN_NEGATION.match(raw))
    kind = "name" if raw[0].isupper() and not is_start and not is_stop else "word"
    return Token(key, kind, "", is_negated, clause, is_stop)


def _negate_korean(tokens: list[Token], clause: int) -> list[Token]:
    """Marks the content word before a Korean negation: it follows what it governs."""
    out = list(tokens)
    for i in range(len(out) - 1, -1, -1):
        token = out[i]
        if token.clause != clause:
            break
        if not token.is_stop and token.kind != "number":
            out[i] = Token(token.key, token.kind, token.unit, True, token.clause, token.is_stop)
            break
    return out


@lru_cache(maxsize=512)
def tokens(text: str) -> tuple[Token, ...]:
    """All tokens of a text in order, function words included (marked `is_stop`)."""
    out: list[Token] = []
    clause, is_start, governed = 0, True, 0
    text = clean(text)
    for match in _PATTERN.finditer(text):
        group = match.lastgroup
        if group in ("stop", "comma"):
            clause, governed, is_start = clause + 1, 0, group == "stop"
            continue
        if not match["word"]:
            out.extend(_read(match, clause))
        else:
            raw = match["word"].replace("’", "'")
            if raw.lower() in NEGATORS and not _NO_MORE.match(text, match.start()):
                governed = 4
            elif is_hangul(raw) and _KOREAN_NEGATION.match(raw) and raw not in ("안내", "아니요"):
                out = _negate_korean(out, clause)
            token = _word(raw, clause, is_start, governed > 0)
            governed -= 1 if governed and not token.is_stop else 0
            out.append(token)
        is_start = False
    return tuple(out)


_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+(?=\S)|\n+|(?<=다\.)(?=[가-힣])")
_ABBREVIATION = re.compile(r"\b(?:(?:Mr|Mrs|Ms|Dr|Sr|Jr|St|No|vs|e\.g|i\.e|[A-Z]))\.$")


_CONTINUES = re.compile(r"[a-z\d가-힣A-Z]")


def sentences(text: str) -> list[str]:
    """The sentences of an English or Korean text; a line break always ends one, an abbreviation or "7." does not."""
    text += "\n"
    out: list[str] = []
    begin, last = 0, 0
    for match in _SENTENCE.finditer(text):
        piece, last = text[begin : match.start()].rstrip(), match.end()
        is_ordinal = piece[-2:-1].isdigit() and not text[last : last + 1].isupper()
        is_short = is_ordinal or _ABBREVIATION.search(piece[-8:])
        # "2021. 7. 5." and "J. Smith" go on; "on No. 5. It" does not.
        if is_short and "\n" not in match.group() and _CONTINUES.match(text, last):
            continue
        out.append(piece.strip())
        begin = last
    return [sentence for sentence in out if sentence]
