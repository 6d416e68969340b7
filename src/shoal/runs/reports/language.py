"""Tells which language a text is in, from its script or its most frequent small words."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: A language is known by its small words: at least this many different ones, and more than of any other.
_FEWEST_SMALL_WORDS = 2
#: A script counts if it has at least this share of the letters.
_SCRIPT_SHARE = 0.3

#: Script -> its letters. Languages that share a script other than the Latin one are not told apart.
_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Cyrillic": re.compile(r"[\u0400-\u052f]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
    "Chinese or Japanese": re.compile(r"[\u3040-\u30ff\u3400-\u9fff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
}
_WORDS = re.compile(r"[^\W\d_]+")
#: Language -> small words that are frequent in it and in none of the others.
_SMALL_WORDS: Mapping[str, frozenset[str]] = {
    "English": frozenset(["the", "and", "of", "is", "that", "it", "with", "this", "are", "have", "they", "what"]),
    "German": frozenset(["und", "der", "das", "ist", "nicht", "ich", "mit", "ein", "eine", "auch", "wir", "für"]),
    "French": frozenset(["le", "les", "et", "est", "des", "une", "pas", "dans", "pour", "qui", "sur", "nous"]),
    "Spanish": frozenset(["el", "los", "las", "y", "es", "por", "con", "una", "pero", "muy", "lo", "esto"]),
    "Italian": frozenset(["il", "che", "di", "gli", "è", "sono", "della", "questo", "ma", "anche", "più", "perché"]),
    "Portuguese": frozenset(["o", "os", "não", "uma", "com", "mas", "muito", "você", "isso", "também", "são", "em"]),
    "Dutch": frozenset(["het", "een", "van", "niet", "ik", "zijn", "voor", "ook", "maar", "wij", "deze", "naar"]),
}


def detect_language(text: str) -> str | None:
    """Return the language or the script of a text; None where the text is too short to tell."""
    words = _WORDS.findall(text.lower())
    if not text.isascii():
        letters = sum(map(len, words))
        for script, pattern in _SCRIPTS.items():
            if letters and len(pattern.findall(text)) >= _SCRIPT_SHARE * letters:
                return script
    different = set(words)
    counts = sorted(((len(different & small), language) for language, small in _SMALL_WORDS.items()), reverse=True)
    (most, language), (second, _) = counts[:2]
    return language if most >= _FEWEST_SMALL_WORDS and most > second else None
