"""The English words that the rules of reading know; `data/english.json`."""

from __future__ import annotations

from importlib import resources

import msgspec


class EnglishWords(msgspec.Struct, frozen=True):
    """Lists of words. Those with a capital letter are parts of names."""

    #: Words that begin sentences and are no names.
    openers: frozenset[str]
    calendar: frozenset[str]
    demonyms: frozenset[str]
    countries: frozenset[str]
    titles: tuple[str, ...]
    male_titles: frozenset[str]
    female_titles: frozenset[str]
    #: Small words inside of names: Ludwig van Beethoven.
    particles: frozenset[str]
    organisation_words: frozenset[str]
    organisation_suffixes: frozenset[str]
    #: What organisations are said to be: Green Eastport, a campaign group.
    organisation_nouns: frozenset[str]
    #: What organisations are called that are not named: the council.
    generic_organisations: frozenset[str]
    place_words: frozenset[str]
    place_prepositions: frozenset[str]
    #: Plural nouns of people.
    groups: frozenset[str]
    role_nouns: frozenset[str]
    #: Roles of people who speak for their organisation.
    leaders: frozenset[str]
    female_roles: frozenset[str]
    male_roles: frozenset[str]
    speech: frozenset[str]
    #: What organisations do and things do not.
    acts: frozenset[str]
    supports: frozenset[str]
    opposes: frozenset[str]
    #: Acts about the topic that say that their author is for it.
    plans: frozenset[str]
    #: Words by which people value things.
    praise: frozenset[str]
    blame: frozenset[str]
    against: tuple[str, ...]
    in_favour: tuple[str, ...]
    kin: frozenset[str]
    #: Kind of relation -> verbs between two names that tell it.
    contacts: dict[str, frozenset[str]]
    #: Verbs that distinguish a statement from a phrase.
    verbs: frozenset[str]


WORDS = msgspec.json.decode(
    resources.files(__package__).joinpath("data", "english.json").read_bytes(), type=EnglishWords
)
