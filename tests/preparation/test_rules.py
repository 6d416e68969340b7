"""Reading without a language model: who is found in English texts, what is known of them, and what is drafted."""

from __future__ import annotations

import time

import pytest

from shoal.preparation.draft import Draft
from shoal.preparation.reading.documents import parse_document
from shoal.preparation.reading.findings import Findings
from shoal.preparation.reading.topics import choose_topic
from shoal.preparation.rules import draft_by_rules, read_by_rules
from shoal.preparation.writing import share_out
from tests.preparation.texts import ASKED_PRODUCT, ASKED_TOWN, CHINESE, PRODUCT, STRIKE, TOWN


def read(text: str, requirement: str, name: str = "story.md") -> tuple[Findings, Draft]:
    topic, findings = read_by_rules(requirement, [parse_document(name, text.encode())], None)
    return findings, draft_by_rules(topic, findings, requirement)


@pytest.fixture(scope="module")
def town() -> tuple[Findings, Draft]:
    return read(TOWN, ASKED_TOWN)


@pytest.fixture(scope="module")
def product() -> tuple[Findings, Draft]:
    return read(PRODUCT, ASKED_PRODUCT)


def test_everybody_in_a_story_is_found_and_nothing_else(town: tuple[Findings, Draft]) -> None:
    found = {entity.name: entity.kind for entity in town[0].entities}
    assert found == {
        "Helen Marsh": "person",
        "Tom Brennan": "person",
        "Aisha Rahman": "person",
        "Paul Novak": "person",
        "Lena Fischer": "person",
        "James Okoro": "person",
        "Eastport Town Council": "organisation",
        "Harbour Street Traders' Association": "organisation",
        "Green Eastport": "organisation",
        "Eastport Hospital": "organisation",
        "Shopkeepers": "group",
        "Cyclists": "group",
        "Residents": "group",
        "Parents": "group",
    }


@pytest.mark.parametrize(("text", "asked"), [(TOWN, ASKED_TOWN), (PRODUCT, ASKED_PRODUCT), (STRIKE, "The strike")])
def test_how_often_a_text_says_it_changes_nobody(text: str, asked: str) -> None:
    once, often = (read(whole, asked)[0].entities for whole in (text, "\n\n".join([text] * 4)))
    assert {(each.name, each.kind) for each in often} >= {(each.name, each.kind) for each in once}
    people = {each.name for each in often if each.kind == "person"}
    assert people == {each.name for each in once if each.kind == "person"}


def test_short_names_and_what_is_only_called_by_its_kind_are_the_same(town: tuple[Findings, Draft]) -> None:
    called = {entity.name: entity.aliases for entity in town[0].entities}
    assert called["Tom Brennan"] == ["Brennan"]
    assert called["Eastport Town Council"] == ["the council"]
    assert called["Harbour Street Traders' Association"] == ["HSTA", "Traders' Association"]


def test_roles_ages_and_stances_are_those_of_the_text(town: tuple[Findings, Draft]) -> None:
    known = {entity.name: entity for entity in town[0].entities}
    assert known["Helen Marsh"].role == "mayor"
    assert known["Tom Brennan"].age == 52
    assert known["Lena Fischer"].role == "spokeswoman for Green Eastport"
    sides = {name: None if one.stance is None else one.stance > 0 for name, one in known.items()}
    assert sides == {
        "Helen Marsh": True,
        "Eastport Town Council": True,
        "Green Eastport": True,
        "Lena Fischer": True,
        "Cyclists": True,
        "Parents": True,
        "Tom Brennan": False,
        "Aisha Rahman": False,
        "Harbour Street Traders' Association": False,
        "Shopkeepers": False,
        "James Okoro": False,
        "Paul Novak": False,
        "Residents": None,
        "Eastport Hospital": None,
    }


def test_relations_have_the_sentence_that_says_them(town: tuple[Findings, Draft]) -> None:
    found = {(each.source, each.kind, each.target) for each in town[0].relations}
    assert ("Lena Fischer", "spokeswoman of", "Green Eastport") in found
    assert ("Aisha Rahman", "accused", "Eastport Town Council") in found
    assert ("Green Eastport", "supports", "Eastport Town Council") in found
    for relation in town[0].relations:
        assert relation.evidence.document == "story.md"


def test_a_persona_says_what_the_text_says_and_names_no_more(town: tuple[Findings, Draft]) -> None:
    people = {person.name: person for person in town[1].people}
    baker = people["Tom Brennan"]
    assert baker.persona.startswith("Tom Brennan, 52, owns the bakery next to the bridge.")
    assert "strongly against the closure of the old bridge" in baker.persona
    assert "1,400 signatures" in baker.persona
    assert people["Lena Fischer"].profession == "spokeswoman"
    assert "Green Eastport" in people["Lena Fischer"].follows


def test_people_begin_with_what_they_are_quoted_with(town: tuple[Findings, Draft]) -> None:
    posts = {post.author: post.text for post in town[1].posts}
    assert posts["Tom Brennan"] == "They are killing this street."
    assert posts["Lena Fischer"] == "A quiet bridge will bring the harbour back to life."
    assert all(post.text.rstrip(".") in TOWN.replace("\n", " ") for post in town[1].posts)


def test_claims_are_what_somebody_is_reported_to_say(town: tuple[Findings, Draft]) -> None:
    assert [claim.text for claim in town[1].claims] == [
        "The bridge is unsafe for heavy vehicles.",
        "A closure could last ten years.",
    ]


def test_a_launch_is_read_as_well(product: tuple[Findings, Draft]) -> None:
    known = {entity.name: entity for entity in product[0].entities}
    assert product[1].topic == "the launch of the Murmur speaker"
    assert known["Halden Audio"].kind == "organisation"
    assert known["Digital Rights Forum"].aliases == ["DRF"]
    assert "Murmur" not in known
    assert known["Soo-jin Park"].role == "pediatrician"
    sides = {name: known[name].stance for name in ("Ingrid Halden", "Marek Zielinski", "Daniel Reyes", "Amara Nwosu")}
    assert all(stance is not None for stance in sides.values())
    assert [stance is not None and stance > 0 for stance in sides.values()] == [True, False, False, True]


def test_quotations_are_given_to_who_said_them_or_to_nobody() -> None:
    known = {entity.name: entity for entity in read(STRIKE, "How will people react to the nurses' strike?")[0].entities}
    assert known["Siobhan Keane"].quotes[0].startswith("We are not asking for the moon")
    assert known["Padraig Nolan"].quotes == ["She has been minister for two years and has never met these nurses."]
    assert known["Orla Brady"].quotes == []
    assert known["Kevin Walsh"].quotes == ["It's children who pay for this."]
    assert known["Mary Byrne"].age == 78
    assert known["Martin Doyle"].role == "chief executive of the hospital"
    unknown = read('The cook Ada Berg said little. "I never saw it coming," said Xeno.', "the flood")[0]
    assert {entity.name: entity.quotes for entity in unknown.entities} == {"Ada Berg": []}


def test_what_somebody_rejects_besides_the_topic_is_no_stance() -> None:
    known = {entity.name: entity for entity in read(STRIKE, "How will people react to the nurses' strike?")[0].entities}
    assert known["Irish Nurses' Union"].stance is None


def test_groups_of_the_text_are_sampled_beside_the_public(town: tuple[Findings, Draft]) -> None:
    groups = {group.group: group for group in town[1].groups}
    assert [*groups] == ["shopkeepers", "cyclists", "residents", "parents", "public"]
    assert groups["shopkeepers"].professions == ["shopkeeper"]
    assert groups["cyclists"].stance == (0.7, 0.3)
    assert groups["public"].stance is None
    assert sum(share_out(town[1].groups, 77)) == 77


def test_a_text_in_another_language_is_not_read_and_that_is_said() -> None:
    findings, draft = read(CHINESE, "What will people say about the old bridge?", "zh.txt")
    assert [entity.kind for entity in findings.entities if entity.kind != "group"] == []
    [note] = findings.notes
    assert note.startswith("zh.txt is in Chinese or Japanese, of which nothing was read: offline, only English is")
    assert draft.topic == "the old bridge"


def test_a_requirement_alone_gives_a_topic_and_a_first_post() -> None:
    topic, findings = read_by_rules("The city bans cars from its centre. What will drivers say?", [], None)
    draft = draft_by_rules(topic, findings, "The city bans cars from its centre. What will drivers say?")
    assert draft.posts[0].text == "The city bans cars from its centre."
    assert "drivers" in [group.group for group in draft.groups]


@pytest.mark.parametrize(
    ("requirement", "topic"),
    [
        (ASKED_TOWN, "the closure of the old bridge"),
        ("Simulate how “a four-day week” is discussed", "a four-day week"),
        ("What do people think about a tax on sugar?", "a tax on sugar"),
        ("老桥应该关闭吗？", "老桥应该关闭吗"),
        (
            'What do people think about the new stadium? The mayor called it "the only way". The club is for it.',
            "the new stadium",
        ),
        ('The mayor said "never again". Our speaker listens. What will people say?', "Our speaker listens"),
    ],
)
def test_the_topic_is_a_phrase_of_the_requirement(requirement: str, topic: str) -> None:
    assert choose_topic(requirement, []) == topic


def test_500_pages_are_read_in_seconds() -> None:
    # About 1.2 million characters, in which everybody of the story comes again and again.
    text = "\n\n".join(f"{TOWN}\n\nChapter {n} ends here, and says little." for n in range(480))
    began = time.process_time()
    findings, _ = read(text, ASKED_TOWN)
    assert time.process_time() - began < 20
    assert findings.entities[0].mentions > 400
    assert all(len(entity.evidence) <= 12 for entity in findings.entities)
