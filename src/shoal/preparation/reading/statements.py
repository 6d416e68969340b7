"""Reads what English sentences say of people who are named in them: quotations, stances, relations and claims."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean

from shoal.preparation.reading.english import WORDS
from shoal.preparation.reading.entities import EntityIndex, list_neighbours
from shoal.preparation.reading.findings import DocumentEntity, DraftClaim, EntityRelation
from shoal.preparation.reading.sentences import Sentence
from shoal.worlds import content_words, read_attitude, stem

MAX_CLAIMS = 3
MAX_QUOTES = 6
_FEWEST_QUOTE_WORDS, _MOST_QUOTE_CHARS = 4, 400
_FEWEST_CLAIM_WORDS, _MOST_CLAIM_WORDS = 4, 24
#: What a verb of support or opposition says, what a phrase says, and what quotations say at most.
_PLAIN, _PHRASE, _OWN_WORDS = 0.7, 0.6, 0.8
#: Words after a name among which its verb is looked for.
_REACH = 5
#: Who rejects or supports these says little about the topic.
_OTHER_MATTERS = frozenset("offer offers talks request requests allegation allegations accusation accusations".split())
#: The share of the stance of an organisation that people who speak for it have.
_INHERITED = 0.8
_QUOTE = re.compile(r"“([^”]{8,600})”|\"([^\"]{8,600})\"")
_WORD = re.compile(r"[\w’'-]+")
_CLAUSE_END = re.compile(r"[,;:]|\b(?:because|while|but|although|who|which|after|as)\b")
_REPORTED = re.compile(
    rf"\b(?:{'|'.join(sorted(WORDS.speech))}|evidence|rumours?|reports?)\s+that\s+(?P<claim>[^.!?;“\"]+)", re.IGNORECASE
)
_SAID_WITHOUT_THAT = re.compile(r"\b(?:said|says|claims?|claimed)\s+(?P<claim>(?:the|a|an|no|this)\s[^.!?;,“\"]+)")
_PRONOUN_SPEAKS = re.compile(
    rf"[”\"]\s*(?:he|she|they)\s+(?:{'|'.join(WORDS.speech)})\b|[”\"]\s*(?:{'|'.join(WORDS.speech)})\s+(?:he|she|they)\b"
)
_SPEECH = "|".join(sorted(WORDS.speech))
_STRANGER_SPEAKS = re.compile(
    rf"\b(?:{_SPEECH})\s+(?:the\s+)?[A-ZÀ-Þ][\w’'-]+|\b(?!He\b|She\b|They\b|It\b|We\b|I\b)[A-ZÀ-Þ][\w’'-]+\s+(?:{_SPEECH})\b"
)
_WILL = re.compile(r"\bwould\b")
_SLUG = re.compile(r"[^a-z0-9]+")
#: A noun between two names that states a relation: Lena Fischer, spokeswoman for Green Eastport.
_BELONGS = re.compile(r"\b(?P<noun>[\w-]+)\s+(?:of|for|at|with|from)\s+(?:the\s+)?$")


def attach_statements(index: EntityIndex, sentences: Sequence[Sentence], topic: str) -> None:
    """Attach to each entity its quotations and its stance on the topic."""
    leans: defaultdict[str, list[float]] = defaultdict(list)
    about = {stem(word) for word in content_words(topic.lower())}
    by_name = {entity.name: entity for entity in index.entities}
    speaker: str | None = None
    place = ("", "")
    for number, sentence in enumerate(sentences):
        if (sentence.document, sentence.place) != place:
            place, speaker = (sentence.document, sentence.place), speaker if place[0] == sentence.document else None
        speaker = _find_speaker(index, number, sentence, speaker)
        quotes = [next(filter(None, found.groups())).strip() for found in _QUOTE.finditer(sentence.text)]
        for quote in quotes:
            if speaker is not None and len(_WORD.findall(quote)) >= _FEWEST_QUOTE_WORDS:
                _add_quote(by_name[speaker], quote, sentence)
                if (value := _value_quote(quote, sentence.text, about)) is not None:
                    leans[speaker].append(_OWN_WORDS * value)
        for name, lean in _read_verbs(index, number, sentence.text, about):
            leans[name].append(lean)
    for name, found in leans.items():
        if (told := [lean for lean in found if lean]) and by_name[name].stance is None:
            by_name[name].stance = round(max(-1.0, min(1.0, fmean(told))), 2)


def inherit_stances(index: EntityIndex, relations: Sequence[EntityRelation]) -> None:
    """Let people who speak for an organisation stand where it does; others too, where nothing else is said of them."""
    by_name = {entity.name: entity for entity in index.entities}
    for relation in relations:
        if relation.kind.endswith(" of") or relation.kind == "works for":
            one, other = by_name[relation.source], by_name[relation.target]
            if relation.kind.removesuffix(" of") in WORDS.leaders and other.stance is not None:
                one.stance = other.stance
            for mine, theirs in ((one, other), (other, one)):
                if mine.stance is None and theirs.stance is not None and "group" not in (mine.kind, theirs.kind):
                    mine.stance = round(_INHERITED * theirs.stance, 2)


def _speaks_of(text: str, about: set[str]) -> bool:
    return bool(about & {stem(word) for word in _WORD.findall(text.lower())})


def find_relations(index: EntityIndex, sentences: Sequence[Sentence]) -> list[EntityRelation]:
    """Find what sentences say of two who stand next to one another in them. Each pair has its first relation."""
    relations: dict[tuple[str, str], EntityRelation] = {}
    for number in sorted(index.named):
        text = sentences[number].text
        quoted = [found.span() for found in _QUOTE.finditer(text)]
        for (_, end, source), (start, _, target) in list_neighbours(index, number):
            if any(first <= start < last or first < end <= last for first, last in quoted):
                continue
            kind = _name_relation(text[end:start])
            if kind is not None and (source, target) not in relations:
                relations[source, target] = EntityRelation(source, target, kind, sentences[number])
    return [*relations.values()]


def find_claims(sentences: Sequence[Sentence], topic: str) -> list[DraftClaim]:
    """Find reported statements about the topic."""
    about = {word.lower() for word in content_words(topic)}
    scored: dict[str, tuple[int, DraftClaim]] = {}
    for sentence in sentences:
        for pattern in (_REPORTED, _SAID_WITHOUT_THAT):
            for found in pattern.finditer(sentence.text):
                text = _clean_claim(found["claim"])
                words = {word.lower() for word in _WORD.findall(text)}
                if text and words & about:
                    claim = DraftClaim(make_slug(text), text, sentence)
                    scored.setdefault(text.lower(), (len(words & about), claim))
    best = sorted(scored.values(), key=lambda one: -one[0])
    chosen: dict[str, DraftClaim] = {}
    for _, claim in best:
        chosen.setdefault(claim.id, claim)
    return [*chosen.values()][:MAX_CLAIMS]


def make_slug(text: str) -> str:
    """Make the id of a claim of its first words of content."""
    words = [_SLUG.sub("-", word.lower()).strip("-") for word in content_words(text)]
    return "-".join(word for word in words if word)[:40].strip("-") or "claim"


def _find_speaker(index: EntityIndex, number: int, sentence: Sentence, before: str | None) -> str | None:
    """Return who speaks in a sentence: who is named outside of its quotations, or who spoke before."""
    quoted = [found.span() for found in _QUOTE.finditer(sentence.text)]
    outside = [
        (start, end, name)
        for start, end, name in index.named.get(number, ())
        if not any(first <= start < last for first, last in quoted)
    ]
    if not outside:
        bare = _QUOTE.sub(" ", sentence.text)
        # An unknown name speaks here, so the previous speaker does not.
        return None if _STRANGER_SPEAKS.search(bare) else before
    if before is not None and _PRONOUN_SPEAKS.search(sentence.text):
        return before
    for start, end, name in outside:
        around = {*_WORD.findall(sentence.text[:start])[-2:], *_WORD.findall(sentence.text[end:])[:4]}
        if around & WORDS.speech:
            return name
    ahead = [name for start, _, name in outside if quoted and start < quoted[0][0]]
    return ahead[0] if ahead else outside[0][2]


def _value_quote(quote: str, sentence: str, about: set[str]) -> float | None:
    """Return how a quotation values the topic; None where it neither names it nor plainly praises or blames."""
    words = {word.lower() for word in _WORD.findall(quote)}
    is_short = sentence.count(" ") - quote.count(" ") <= 8
    is_praise_or_blame = bool(words & (WORDS.praise | WORDS.blame))
    if not (_speaks_of(quote, about) or is_praise_or_blame or (is_short and _speaks_of(sentence, about))):
        return None
    praise = len(words & WORDS.praise) - len(words & WORDS.blame)
    return (read_attitude(quote).lean or 0.0) if not praise else 1.0 if praise > 0 else -1.0


def _add_quote(entity: DocumentEntity, quote: str, sentence: Sentence) -> None:
    """Keep a quotation as a sentence, unless it is too long, known already, or there are enough."""
    quote = quote.rstrip(",").strip()
    quote = quote if quote.endswith((".", "!", "?")) else f"{quote}."
    if len(quote) <= _MOST_QUOTE_CHARS and quote not in entity.quotes and len(entity.quotes) < MAX_QUOTES:
        entity.quotes.append(quote[:1].upper() + quote[1:])
        entity.add_evidence([sentence])


def _read_verbs(index: EntityIndex, number: int, text: str, about: set[str]) -> Iterator[tuple[str, float]]:
    """Yield who is for or against something by the verb that follows the name, or by words such as `against`."""
    spans = sorted(index.named.get(number, ()))
    bare = _QUOTE.sub(lambda found: " " * len(found[0]), text)
    for place, (start, end, name) in enumerate(spans):
        until = spans[place + 1][0] if place + 1 < len(spans) else len(text)
        clause = bare[end : max(until, end)]
        if clause.startswith(",") and "," in clause[1:]:
            # What stands between commas says who it is, and not what it does.
            clause = clause[1:].partition(",")[2]
        head = _CLAUSE_END.split(clause.lstrip(" ,"), maxsplit=1)[0]
        words = [word.lower() for word in _WORD.findall(head)][:_REACH]
        if _OTHER_MATTERS & {*words, *(word.lower() for word in _WORD.findall(bare[:start])[-3:])}:
            continue
        negated = any(word in ("not", "never") or word.endswith(("n't", "n’t")) for word in words)
        sign = -1.0 if negated else 1.0
        lower = clause.lower()
        if any(word in WORDS.opposes for word in words):
            yield name, -_PLAIN * sign
        elif any(word in WORDS.supports for word in words) or (
            any(word in WORDS.plans for word in words) and "against" not in words and _speaks_of(lower, about)
        ):
            yield name, _PLAIN * sign
        elif any(phrase in lower for phrase in WORDS.against):
            yield name, -_PHRASE * sign
        elif any(phrase in lower for phrase in WORDS.in_favour):
            yield name, _PHRASE * sign


def _name_relation(between: str) -> str | None:
    """Say what the words between two names make of them; None where they say nothing plain."""
    words = [word.lower() for word in _WORD.findall(between)]
    if len(words) > 12:
        return None
    if found := _BELONGS.search(between):
        noun = found["noun"].lower()
        if noun in WORDS.role_nouns or noun in ("member", "works", "worked", "owner", "founder"):
            return "works for" if noun in ("works", "worked") else f"{noun} of"
    told = set(words)
    if words == ["and"] or words[-2:] == ["together", "with"]:
        return "acts together with"
    if kin := told & WORDS.kin:
        return f"{min(kin)} of"
    for kind, verbs in WORDS.contacts.items():
        if told & verbs:
            return kind
    if told & WORDS.opposes or "against" in words[-2:]:
        return "opposes"
    if told & WORDS.supports:
        return "supports"
    return None


def _clean_claim(text: str) -> str:
    """Make a sentence of a reported statement; empty where it is none."""
    text = _WILL.sub("will", " ".join(text.split())).strip(" ,")
    words = _WORD.findall(text)
    is_whole = _FEWEST_CLAIM_WORDS <= len(words) <= _MOST_CLAIM_WORDS and any(w.lower() in WORDS.verbs for w in words)
    starts_with_pronoun = words[:1] and words[0].lower() in (
        "he",
        "she",
        "they",
        "it",
        "we",
        "i",
        "his",
        "her",
        "their",
    )
    return "" if not is_whole or starts_with_pronoun else f"{text[:1].upper()}{text[1:]}."
