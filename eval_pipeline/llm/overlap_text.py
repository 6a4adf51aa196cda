"""Text as comparable tokens, for the embedded judge: dates, numbers and times by value, words without particles.

Pure and deterministic. How two texts are compared is `overlap`'s business; no grade is known here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(_MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = {word: 10 * i for i, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_ENGLISH_NUMBERS = {word: i for i, word in enumerate(_ONES)} | _TENS
_KOREAN_NUMBERS = {
    "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10,
    "열한": 11, "열두": 12, "스무": 20, "스물네": 24, "서른": 30, "마흔": 40, "쉰": 50,
}  # fmt: skip
_KOREAN_DAYS = {"하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "열흘": 10}
_WEEKDAYS = {word: i // 3 for i, word in enumerate(
    "monday mondays 월요일 tuesday tuesdays 화요일 wednesday wednesdays 수요일 thursday thursdays 목요일 "
    "friday fridays 금요일 saturday saturdays 토요일 sunday sundays 일요일".split()
)}  # fmt: skip
_SCALES = {"천": 1e3, "만": 1e4, "억": 1e8, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_COUNTERS = "개|명|번|건|시간|시|분|층|살|곳|대|달|장|주|가지|사람"

_PATTERN = re.compile(
    rf"""
      (?P<iso_y>\d{{4}})\s?(?:[-./]|년)\s?(?P<iso_m>\d{{1,2}})\s?(?:[-./]|월)\s?(?P<iso_d>\d{{1,2}})(?!\d)일?
    | (?P<ko_m>\d{{1,2}})월\s?(?P<ko_d>\d{{1,2}})일
    | (?<!\d)(?P<km_m>\d{{1,2}})월(?!요일)
    | (?P<us_m>\b(?:{_MONTH}))\b\.?\s(?P<us_d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<us_y>\d{{4}})\b)?
    | \b(?P<gb_d>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<gb_m>{_MONTH})\b\.?(?:,?\s(?P<gb_y>\d{{4}})\b)?
    | \b(?P<my_m>{_MONTH})\b\.?,?\s(?P<my_y>\d{{4}})\b
    | (?P<half>오전|오후|밤|저녁|새벽)?\s?(?P<ko_h>\d{{1,2}})시(?!간)(?:\s?(?P<ko_min>\d{{1,2}})분)?
    | (?<![\d.])(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?!\d)(?:\s?(?P<ampm>am|pm)\b)?
    | (?P<number>\d[\d,]*(?:\.\d+)?)\s?(?P<scale>천|만|억|thousand\b|million\b|billion\b)?(?:st\b|nd\b|rd\b|th\b)?
    | \b(?P<tens>{"|".join(_TENS)})-(?P<ones>{"|".join(_ONES[1:10])})\b
    | (?<![가-힣])(?P<native>{"|".join(sorted(_KOREAN_NUMBERS, key=len, reverse=True))})(?=\s?(?:{_COUNTERS}))
    | (?<![가-힣])(?P<days>{"|".join(_KOREAN_DAYS)})
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)
    | (?P<stop>[.!?;。\n]+(?=\s|$)|\n)
    | (?P<comma>[,:()])
    """,
    re.VERBOSE | re.IGNORECASE,
)

# Longest first; a suffix is taken off only where two syllables stay ("가을" is no "가"), except the unmistakable ones.
_SUFFIXES = sorted(
    (
        "은 는 이 가 을 를 의 에 에서 에게 에게서 께 께서 한테 로 으로 로서 으로서 로써 와 과 랑 이랑 하고 도 만 부터 까지 보다 처럼 "
        "마다 이나 나 밖에 이라도 라도 이라서 이므로 이고 이며 이에요 예요 이야 야 이었습니다 였습니다 입니다 입니까 인가요 이다 "
        "이십니다 님 님이 님은 님께 님께서 님에게 님입니다 님이십니다 에는 에도 에서는 에서도 으로는 께서는 에만"
        "합니다 합니까 하십니다 하시면 하고 하며 하면 하여 하는 한다 했다 했습니다 해야 해요 해 하셔야 하나요 하지 하시는 해서 "
        "됩니다 되었습니다 되는 된다 돼 되어 되면 되지 되나요 되는지 하는지 시킵니다 "
        "니다 니까 다 면 시면 십니다 "
        "습니다 습니까 어요 아요 어야 아야 었습니다 았습니다 는다 세요 으면 려면 나요 는지 지요 지 고 어 아"
    ).split(),
    key=len,
    reverse=True,
)
_SAFE_AFTER_ONE = frozenset("으로 을 를 에서 에게 까지 부터 습니다 습니까 었습니다 았습니다 나요 입니다".split())
_STOP_WORDS = frozenset(
    "a an the of in on at to for from by with and or as is are was were be been being it its this that these those there "
    "he she they his her their them him i you we our your my who whom whose which what when where why how do does did done "
    "has have had will would can could may might must shall should so then than also only if because since but about into "
    "after before up out over under s t re ve ll d m yes no not cannot never nor neither don doesn didn isn aren wasn won "
    "couldn wouldn shouldn hasn haven known called name named one "
    "수 있 있는 있다 있습 있습니다 있어 있어요 있나요 없 없는 없다 없습니다 없어요 것 거 게 및 등 그 이 저 네 예 아니요 때 때문 때문입 때문에 "
    "하면 되나요 되 됩니다 합니다 해야 하나요 무엇 누구 어디 언제 어떻게 얼마 얼마나 어느 몇 안 못 지 않 않는 않습니다 않는다 않다".split()
)
_NEGATORS = frozenset(
    "no not cannot never nor neither none nobody nothing without don't doesn't didn't isn't aren't wasn't weren't won't "
    "can't couldn't wouldn't shouldn't hasn't haven't".split()
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
        for suffix in _SUFFIXES:
            rest = len(word) - len(suffix)
            if word.endswith(suffix) and rest >= (1 if suffix in _SAFE_AFTER_ONE else 2):
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
        index = int(month) if month.isdigit() else 1 + [name[:3] for name in _MONTHS].index(month[:3].lower())
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
        value = float(digits[:15]) * _SCALES.get((part["scale"] or "").lower(), 1)
        is_year = len(digits) == 4 and digits.isdigit() and "," not in part["number"] and 1000 <= value <= 2100
        return [_numeric(value, "year" if is_year and not part["scale"] else "plain", clause)]
    if part["tens"]:
        return [_numeric(_TENS[part["tens"].lower()] + _ENGLISH_NUMBERS[part["ones"].lower()], "plain", clause)]
    if part["native"]:
        return [_numeric(_KOREAN_NUMBERS[part["native"]], "plain", clause)]
    return [_numeric(_KOREAN_DAYS[part["days"]], "plain", clause)] if part["days"] else []


def _word(raw: str, clause: int, is_start: bool, is_negated: bool) -> Token:
    lowered = raw.lower()
    if lowered in _ENGLISH_NUMBERS and lowered != "one":
        return Token(f"#{_ENGLISH_NUMBERS[lowered]}", "number", "plain", False, clause)
    key = stem(raw)
    if key in _WEEKDAYS:
        return Token(f"#weekday{_WEEKDAYS[key]}", "number", "weekday", False, clause)
    is_stop = lowered in _STOP_WORDS or key in _STOP_WORDS or lowered in _NEGATORS
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
            if raw.lower() in _NEGATORS and not _NO_MORE.match(text, match.start()):
                governed = 4
            elif is_hangul(raw) and _KOREAN_NEGATION.match(raw) and raw not in ("안내", "아니요"):
                out = _negate_korean(out, clause)
            token = _word(raw, clause, is_start, governed > 0)
            governed -= 1 if governed and not token.is_stop else 0
            out.append(token)
        is_start = False
    return tuple(out)


_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+(?=\S)|\n+|(?<=다\.)(?=[가-힣])")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Sr|Jr|St|No|vs|e\.g|i\.e|[A-Z])|\d)\.$")


def sentences(text: str) -> list[str]:
    """The sentences of an English or Korean text; a line break always ends one, an abbreviation or "7." does not."""
    out: list[str] = []
    pending, last = "", 0
    for match in _SENTENCE.finditer(text + "\n"):
        piece = pending + (text + "\n")[last : match.start()]
        gap, last = match.group(), match.end()
        if "\n" not in gap and _ABBREVIATION.search(piece.rstrip()) and re.match(r"[a-z\d가-힣A-Z]", (text + "\n")[last:]):
            # "2021. 7. 5." and "J. Smith": no end unless a capital follows a number.
            if not (piece.rstrip()[-2:-1].isdigit() and (text + "\n")[last].isupper()):
                pending = piece + gap
                continue
        out.append(piece.strip())
        pending = ""
    return [sentence for sentence in out if sentence]
