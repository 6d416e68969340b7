"""Answers that take long to compute and stay the same as long as what they are made of does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import msgspec

_MAX_ANSWERS = 64


class RememberedAnswers:
    """The last answers that were computed, encoded. Nothing is lost where one is forgotten."""

    def __init__(self) -> None:
        #: What is asked -> what it was made of, and the answer.
        self._known: OrderedDict[Hashable, tuple[Hashable, msgspec.Raw]] = OrderedDict()
        self._changing = Lock()

    def recall(self, asked: Hashable, made_of: Hashable, compute: Callable[[], object]) -> msgspec.Raw:
        """Return what was computed from the same before, or else compute it."""
        with self._changing:
            known = self._known.get(asked)
            if known is not None and known[0] == made_of:
                self._known.move_to_end(asked)
                return known[1]
        found = msgspec.Raw(msgspec.json.encode(compute(), enc_hook=str))
        with self._changing:
            self._known[asked] = made_of, found
            while len(self._known) > _MAX_ANSWERS:
                self._known.popitem(last=False)
        return found
