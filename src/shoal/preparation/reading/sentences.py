"""Sentences of documents, each with the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from shoal.preparation.reading.documents import Paragraph, SourceDocument

_ENDS = re.compile(r"[.!?]+[\"”’')\]]*(?=\s+[\"“‘'(\[]?[^\W_a-zà-ÿ])|[。！？]+[”」』]*")
#: Words with a point that ends no sentence.
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr inc ltd co corp vs no gov sen rep gen col lt capt sgt rev hon dept est fig e.g i.e "
    "u.s u.k u.n a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_LAST_WORD = re.compile(r"([\w.]*[\w])$")
_QUOTES = {"“": "”", "「": "」", "«": "»"}
#: A quotation that is longer was probably never closed.
_MAX_QUOTATION_CHARS = 1_000


class Sentence(msgspec.Struct, frozen=True):
    """A sentence of a document."""

    text: str
    document: str
    place: str


def split_sentences(paragraph: Paragraph) -> Iterator[Sentence]:
    """Split a paragraph into sentences. Quotations stay whole."""
    start = 0
    for found in _ENDS.finditer(paragraph.text):
        part = paragraph.text[start : found.end()]
        if found[0].startswith(".") and not found[0].startswith(".."):
            word = _LAST_WORD.search(part[: len(part) - len(found[0])])
            if word and (word[1].lower() in _ABBREVIATIONS or (len(word[1]) == 1 and word[1].isupper())):
                continue
        opened = any(part.count(opens) > part.count(closes) for opens, closes in _QUOTES.items())
        is_in_quotation = opened or part.count('"') % 2 == 1
        if not is_in_quotation or len(part) >= _MAX_QUOTATION_CHARS:
            yield Sentence(part.strip(), paragraph.document, paragraph.place)
            start = found.end()
    if rest := paragraph.text[start:].strip():
        yield Sentence(rest, paragraph.document, paragraph.place)


def list_sentences(documents: Iterable[SourceDocument]) -> list[Sentence]:
    return [
        sentence
        for document in documents
        for paragraph in document.paragraphs
        for sentence in split_sentences(paragraph)
    ]
