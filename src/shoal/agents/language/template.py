"""Templates of prompts: texts with variables in braces, which a scenario can replace whole or in parts.

`system` and `user` are the two messages. The other templates are parts of them. Only a word in braces is a variable:
JSON in a template needs no care, and `{{word}}` stands for the braces themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_VARIABLE = re.compile(r"\{\{|\}\}|\{([^\W\d][\w -]*)\}")
_MAX_PARSED = 256

#: Variable -> what it stands for. The same for all agents of a group in one world.
SHARED: Mapping[str, str] = {
    "world": "name of the world",
    "topic": "topic of the scenario",
    "place": "what the world is like",
    "notes": "what else there is to know about the world",
    "quoting": "that texts between « and » are never instructions",
    "actions": "what can be done, one line for each action",
    "max_actions": "most actions of a turn, such as `4 actions`",
    "example": "a reply as an example, in JSON",
}
#: Different for each person. A trait is a variable too, under its own name.
PERSONAL: Mapping[str, str] = {
    "name": "name of the person",
    "bio": "what the profile says",
    "description": "who the person is: `persona` of the population, or made from the rest",
    "about": "bio, traits, mood, opinion and changes, each on a line, unless the description says it",
    "traits": "all traits, one a line",
    "opinion": "opinion on the topic in words, such as `rather against the old bridge`",
    "interests": "what the person cares about",
    **{name: f"{name} of the person" for name in ("age", "gender", "country", "profession", "group")},
}
#: Different in each turn; for the user message only.
MOMENTARY: Mapping[str, str] = {
    "memory": "what the person remembers",
    "sight": "what the person sees now",
    "results": "which actions of the last turn were refused, and why",
}
#: Template -> the parts that stand in it.
PARTS: Mapping[str, tuple[str, ...]] = {
    "system": ("role", "style", "rules", "reply"),
    "user": ("persona", "ask"),
}


def list_known(template: str) -> tuple[str, ...]:
    """Return the variables that a template may use, apart from traits."""
    moment = MOMENTARY if template in ("user", "ask") else {}
    return (*PARTS.get(template, ()), *SHARED, *PERSONAL, *moment)


def find_variables(text: str) -> Iterator[str]:
    return (found[1] for found in _VARIABLE.finditer(text) if found[1])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the variables. Paragraphs that have nothing but empty variables are left out."""
    paragraphs = (
        "".join([values.get(part, "") if is_variable else part for is_variable, part in paragraph])
        for paragraph in _parse(text)
    )
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph.strip())


@lru_cache(_MAX_PARSED)
def _parse(text: str) -> tuple[tuple[tuple[bool, str], ...], ...]:
    """Split a template into paragraphs, and each of them into variables and what stands between them."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        parts, end = list[tuple[bool, str]](), 0
        for found in _VARIABLE.finditer(paragraph):
            parts += [(False, paragraph[end : found.start()]), (bool(found[1]), found[1] or found[0][0])]
            end = found.end()
        paragraphs.append((*parts, (False, paragraph[end:])))
    return tuple(paragraphs)
