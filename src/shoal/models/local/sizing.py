"""Chooses how a model is served from the cores and the memory that are free."""

from __future__ import annotations

from math import ceil

import msgspec

from shoal.errors import RunRefused
from shoal.models.local.gguf import ModelHeader

#: Tokens of prompt and reply together that one answer may have; and the fewest with which a run makes sense.
SLOT_TOKENS = 6144
FEWEST_SLOT_TOKENS = 2048
#: Answers at once for each core. More of them are slower all together, and each begins with an empty prefix cache.
SLOTS_PER_CORE = 1
MAX_SLOTS = 16
#: The part of the free memory that a server may take.
_MEMORY_SHARE = 0.8
#: What a server takes beside weights and contexts.
_BASE_BYTES = 250 << 20
#: Prompts of agents that have no slot now, kept for their next turn.
_MAX_PROMPT_CACHE_BYTES = 1 << 30
_MIB = 1 << 20


#: Bytes of weights that one core applies in a second: to the tokens of a prompt, which are worked on together, and to
#: each token that is written. Measured with SmolLM2 on two cores, and taken to hold for others.
_READ_BYTES_PER_SECOND = 13e9
_WRITTEN_BYTES_PER_SECOND = 5e9


class ModelSpeed(msgspec.Struct, frozen=True):
    """How fast a model on this machine is, over all its slots together."""

    #: Tokens in a second: of prompts, without what is in the prefix cache, and of replies.
    read: float
    written: float
    #: Answers at once.
    slots: int

    def time_of(self, read_tokens: float, written_tokens: float) -> float:
        """Return the seconds that it takes to read and write this many tokens."""
        return read_tokens / self.read + written_tokens / self.written


class ServerSize(msgspec.Struct, frozen=True):
    """How a model is served."""

    threads: int
    #: Answers at once.
    slots: int
    #: Tokens of one answer, prompt included.
    context: int
    #: Memory for prompts that were answered.
    prompt_cache_mib: int

    @classmethod
    def choose(
        cls, header: ModelHeader, name: str, cores: float | None, free_bytes: int | None, busy_cores: float = 0.0
    ) -> ServerSize:
        """Choose what suits the machine; raise RunRefused where the model does not fit into the memory.

        Threads wait for one another at every step, and a thread that has to wait for its core holds up the others: so
        there are no more of them than cores that nobody else uses.
        """
        usable = max(1, ceil(cores or 1))
        threads = max(1, min(usable, round(usable - busy_cores)))
        slots, context = min(usable * SLOTS_PER_CORE, MAX_SLOTS), min(SLOT_TOKENS, header.context)
        fewest = min(FEWEST_SLOT_TOKENS, context)
        if free_bytes is None:
            return cls(threads, slots, context, 0)
        room = int(free_bytes * _MEMORY_SHARE) - header.size - _BASE_BYTES
        if room < fewest * header.token_bytes:
            needed = header.size + _BASE_BYTES + fewest * header.token_bytes
            raise RunRefused(
                f"{name} does not fit into the memory: it takes at least {needed / _MIB:,.0f} MiB, and of the "
                f"{free_bytes / _MIB:,.0f} MiB that are free a model may take {_MEMORY_SHARE:.0%}.\n"
                "End something else, or choose a smaller model or a smaller file of the same model."
            )
        # Fewer answers at once are better than answers that are cut off.
        slots = max(1, min(slots, room // (context * header.token_bytes)))
        context = min(context, room // (slots * header.token_bytes))
        left = room - slots * context * header.token_bytes
        return cls(threads, slots, context, min(left, _MAX_PROMPT_CACHE_BYTES) // _MIB)

    def estimate_speed(self, header: ModelHeader) -> ModelSpeed:
        """Estimate how fast the model is from its size and the cores."""
        read, written = (
            self.threads * rate / header.size for rate in (_READ_BYTES_PER_SECOND, _WRITTEN_BYTES_PER_SECOND)
        )
        return ModelSpeed(read, written, self.slots)
