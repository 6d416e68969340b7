"""The words of a text that are worth looking for, in any language."""

from __future__ import annotations

import re

#: Scripts without spaces between words, and hangul, whose words end in particles: looked for in pairs of characters.
_PAIRED = r"\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+")
#: The same for texts without such scripts, and for those that hold nothing but ASCII, each in half the time.
_SPACED_WORDS = re.compile(r"[^\W_]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")
_FIRST_PAIRED = re.compile(rf"[{_PAIRED}]")
_SHORTEST_PLURAL = 4

#: Words too common to tell anything. Those of other languages are found by how many episodes they are in.
_FILLERS = frozenset(
    """a an the and or but if of to in on at by for from with about into over after before as is are was were be been
    being am do does did done has have had having will would shall should can could may might must it its this that
    these those there here he she they them we us you i me my our your his her their who whom whose which what when
    where why how than then so such not no nor only too very just up down out off again more most some any all each
    both few other s t re ve ll d m
    der die das und ist nicht ein eine ich sie wir mit auf von zu den dem des es im für
    le la les un une et est pas que qui je il elle nous vous dans pour sur du
    el los las una y es no que en por con para se su""".split()
)


def terms(text: str) -> list[str]:
    """What to look for, each once, in order of appearance."""
    words = dict.fromkeys(_ASCII_WORDS.findall(text.lower()) if text.isascii() else _words(text.casefold()))
    singular = {
        word[:-1] if word[-1] == "s" and len(word) > _SHORTEST_PLURAL and word[-2] != "s" else word: None
        for word in words
        if word not in _FILLERS
    }
    return list(singular)


def _words(text: str) -> list[str]:
    if not _FIRST_PAIRED.search(text):
        return _SPACED_WORDS.findall(text)
    return [part for word in _WORDS.findall(text) for part in _parts(word)]


def _parts(word: str) -> list[str]:
    if len(word) == 1 or not _FIRST_PAIRED.match(word):
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]
