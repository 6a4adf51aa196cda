"""Word lists of the embedded judge's tokens: numbers, months, particles and endings, function words, negators.

Data only; `overlap_text` reads texts with them.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _longest_first(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.split(), key=len, reverse=True))


MONTHS = _words("january february march april may june july august september october november december")
MONTH = "|".join(MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
ONES = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = {word: 10 * i for i, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), 2)}
ENGLISH_NUMBERS = {word: i for i, word in enumerate(ONES)} | TENS
KOREAN_NUMBERS = {
    "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10,
    "열한": 11, "열두": 12, "스무": 20, "스물네": 24, "서른": 30, "마흔": 40, "쉰": 50,
}  # fmt: skip
KOREAN_DAYS = {"하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "열흘": 10}
WEEKDAYS = {
    word: index // 2
    for index, word in enumerate(
        _words(
            "monday 월요일 tuesday 화요일 wednesday 수요일 thursday 목요일 friday 금요일 saturday 토요일 sunday 일요일"
        )
    )
}
SCALES = {"천": 1e3, "만": 1e4, "억": 1e8, "thousand": 1e3, "million": 1e6, "billion": 1e9}
COUNTERS = "개|명|번|건|시간|시|분|층|살|곳|대|달|장|주|가지|사람"

# A suffix is taken off only where two syllables stay (나이 is no 나), except the unmistakable ones (앱을, 앱으로).
SUFFIXES = _longest_first(
    "은 는 이 가 을 를 의 에 에서 에게 에게서 께 께서 한테 로 으로 로서 으로서 로써 와 과 랑 이랑 하고 도 만 부터 까지 보다 처럼 "
    "마다 이나 나 밖에 이라도 라도 이라서 이므로 이고 이며 이에요 예요 이야 야 이었습니다 였습니다 입니다 입니까 인가요 이다 "
    "이십니다 님 님이 님은 님께 님께서 님에게 님입니다 님이십니다 에는 에도 에서는 에서도 으로는 께서는 에만 "
    "합니다 합니까 하십니다 하시면 하고 하며 하면 하여 하는 한다 했다 했습니다 해야 해요 해 하셔야 하나요 하지 하시는 해서 "
    "됩니다 되었습니다 되는 된다 돼 되어 되면 되지 되나요 되는지 하는지 시킵니다 "
    "니다 니까 다 면 시면 십니다 "
    "습니다 습니까 어요 아요 어야 아야 었습니다 았습니다 는다 세요 으면 려면 나요 는지 지요 지 고 어 아"
)
SAFE_AFTER_ONE = frozenset(_words("으로 을 를 에서 에게 까지 부터 습니다 습니까 었습니다 았습니다 나요 입니다"))
STOP_WORDS = frozenset(
    _words(
        "a an the of in on at to for from by with and or as is are was were be been being it its this that these those there "
        "he she they his her their them him i you we our your my who whom whose which what when where why how do does did done "
        "has have had will would can could may might must shall should so then than also only if because since but about into "
        "after before up out over under s t re ve ll d m yes no not cannot never nor neither don doesn didn isn aren wasn won "
        "couldn wouldn shouldn hasn haven known called name named one "
        "수 있 있는 있다 있습 있습니다 있어 있어요 있나요 없 없는 없다 없습니다 없어요 것 거 게 및 등 그 이 저 네 예 아니요 때 때문 때문입 때문에 "
        "하면 되나요 되 됩니다 합니다 해야 하나요 무엇 누구 어디 언제 어떻게 얼마 얼마나 어느 몇 안 못 지 않 않는 않습니다 않는다 않다"
    )
)
NEGATORS = frozenset(
    _words(
        "no not cannot never nor neither none nobody nothing without don't doesn't didn't isn't aren't wasn't weren't won't "
        "can't couldn't wouldn't shouldn't hasn't haven't"
    )
)
