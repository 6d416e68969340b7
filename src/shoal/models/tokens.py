"""Estimates of how many tokens a text takes, without a tokenizer, which would have to be downloaded for each model."""

from __future__ import annotations

import re
from math import ceil

#: Characters per token of plain text, of other alphabets, and of wide scripts: on the careful side for the tokenizers
#: in use.
CHARACTERS_PER_TOKEN = 4
ALPHABET_CHARACTERS_PER_TOKEN = 2.2
WIDE_CHARACTERS_PER_TOKEN = 1.5

#: Scripts without spaces, hangul, and pictures.
_WIDE = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]"
)
_ASCII = re.compile(r"[\x00-\x7f]+")
_MARK = "…"


def estimate(text: str) -> int:
    """Estimate the tokens of a text. The estimate of two texts joined is never more than the sum of both."""
    if text.isascii():
        return ceil(len(text) / CHARACTERS_PER_TOKEN)
    beyond = _ASCII.sub("", text)
    ascii, wide = len(text) - len(beyond), len(_WIDE.findall(beyond))
    other = len(beyond) - wide
    return ceil(ascii / CHARACTERS_PER_TOKEN + other / ALPHABET_CHARACTERS_PER_TOKEN + wide / WIDE_CHARACTERS_PER_TOKEN)


def shorten(text: str, tokens: int) -> str:
    """Cut a text to this many tokens, with a mark at the cut; return an empty text where nothing fits."""
    if estimate(text) <= tokens:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if estimate(text[:middle] + _MARK) <= tokens:
            fits = middle
        else:
            too_long = middle
    return text[:fits].rstrip() + _MARK if fits else ""
