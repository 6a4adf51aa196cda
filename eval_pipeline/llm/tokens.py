"""Sizes in tokens without a tokenizer: vocabularies would have to be downloaded."""

from __future__ import annotations


def estimate(text: str) -> int:
    """About how many tokens a text is: .8 a Hangul or Han character, .6 a digit, .24 any other.

    Fitted to o200k_base over rendered prompts (2 % low in English, 1 % in Korean) and checked on questions and answers of
    other sources (7 % low to 12 % high).
    """
    wide = 0 if text.isascii() else sum("ᄀ" <= c <= "ᇿ" or "　" <= c <= "鿿" or "가" <= c <= "힣" for c in text)
    digits = sum(map(str.isdigit, text))
    return int(wide * 0.8 + digits * 0.6 + (len(text) - wide - digits) * 0.24) + 1
