"""The colours of opinions, the same in every picture: orange against, grey undecided, blue for."""

from __future__ import annotations

from importlib import resources

CSS = resources.files(__package__).joinpath("plots.css").read_text(encoding="utf-8")

AGAINST, UNDECIDED, FOR = (0xD9, 0x6C, 0x06), (0xA8, 0xAE, 0xB7), (0x1F, 0x6F, 0xD6)
UNKNOWN = "#d0d7de"
#: Ends and middle of a horizontal gradient from against to for.
GRADIENT = "".join(
    f'<stop offset="{offset}" stop-color="rgb{colour}"/>'
    for offset, colour in (("0", AGAINST), ("0.5", UNDECIDED), ("1", FOR))
)


def colour_of(opinion: float) -> str:
    """Return the colour of an opinion between -1 and 1, or a light grey where it is not known."""
    if opinion != opinion:
        return UNKNOWN
    end, share = (FOR if opinion > 0 else AGAINST), min(abs(opinion), 1.0)
    mixed = (round(middle + (far - middle) * share) for middle, far in zip(UNDECIDED, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
