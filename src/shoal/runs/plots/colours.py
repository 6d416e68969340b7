"""The colours of opinions, the same in every picture: orange against, grey undecided, blue for."""

from __future__ import annotations

from importlib import resources

from shoal.engine import TOPIC
from shoal.formats import draw_circle, draw_text

CSS = resources.files(__package__).joinpath("plots.css").read_text(encoding="utf-8")

AGAINST, UNDECIDED, FOR = (0xD9, 0x6C, 0x06), (0xA8, 0xAE, 0xB7), (0x1F, 0x6F, 0xD6)
UNKNOWN = "#d0d7de"
#: Ends and middle of a horizontal gradient from against to for.
GRADIENT = "".join(
    f'<stop offset="{offset}" stop-color="rgb{colour}"/>'
    for offset, colour in (("0", AGAINST), ("0.5", UNDECIDED), ("1", FOR))
)


def name_ends(about: str) -> tuple[str, str]:
    """Name the two ends of the scale of the topic, or of a claim."""
    return ("against", "for") if about == TOPIC else ("denies", "believes")


def draw_legend(about: str, right: float, y: float) -> list[str]:
    """Draw what the colours stand for, in a line that ends here."""
    against, in_favour = name_ends(about)
    parts = []
    for opinion, words in ((1.0, in_favour), (0.0, "undecided"), (-1.0, against)):
        parts.append(draw_text(right, y, words, anchor="end"))
        right -= 6.6 * len(words) + 9
        parts.append(draw_circle((right, y - 4), 5, f'class="node" fill="{colour_of(opinion)}"', words))
        right -= 16
    return parts


def colour_of(opinion: float) -> str:
    """Return the colour of an opinion between -1 and 1, or a light grey where it is not known."""
    if opinion != opinion:
        return UNKNOWN
    end, share = (FOR if opinion > 0 else AGAINST), min(abs(opinion), 1.0)
    mixed = (round(middle + (far - middle) * share) for middle, far in zip(UNDECIDED, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
