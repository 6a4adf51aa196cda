"""Sizes in tokens without a tokenizer: vocabularies would have to be downloaded."""

from __future__ import annotations


def estimate(text: str) -> int:
    """About how many tokens a text is: four ASCII characters, or two thirds of a Hangul or Han character, to a token."""
    if text.isascii():
        return len(text) // 4 + 1
    wide = sum("ᄀ" <= c <= "ᇿ" or "　" <= c <= "鿿" or "가" <= c <= "힣" for c in text)
    return int(wide * 0.8 + (len(text) - wide) / 4) + 1
