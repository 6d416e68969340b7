"""Messages about wrong worlds, events, interventions and minds."""

from __future__ import annotations

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import parse

FIVE = "population: {count: 5}\n"
TWO = "population: [{name: Ada}, {name: Ben}]\n"
ROOM = FIVE + "worlds: [room]\n"

#: A wrong file, and what is said about it after the file's name.
WRONG = [
    (
        FIVE + "events: [{hear: a bell, see: a light}]",
        "2:10: events.0: an event is one thing, found hear and see; write them as two events",
    ),
    (
        FIVE + "events: [{post: a, broadcast: b}]",
        "2:10: events.0: an event is one thing, found post and broadcast; write them as two events",
    ),
    (FIVE + "events: [{hear: a bell}]", "2:17: events.0.hear: 'hear' cannot happen in any of its worlds"),
    (ROOM + "events: [{post: hello}]", "3:17: events.0.post: 'post' cannot happen in any of its worlds"),
    (
        FIVE + "worlds: {twitter: null, room: null}\nevents: [{hear: a bell, world: twitter}]",
        "3:17: events.0.hear: 'hear' cannot happen in 'twitter'",
    ),
    (
        FIVE + "worlds: [dialogue]\nevents: [{think: hm}]",
        "3:18: events.0.think: 'think' cannot happen in any of its worlds",
    ),
    (ROOM + "events: [{hear: a bell, world: rom}]", "3:32: events.0.world: unknown world 'rom'; did you mean 'room'?"),
    (ROOM + "events: [{hear: ''}]", "3:17: events.0.hear: must not be empty"),
    (ROOM + "events: [{hear: 5}]", "3:17: events.0.hear: expected text, found 5; put it in quotes"),
    (
        ROOM + "events: [{hear: a bell, to: [9]}]",
        "3:30: events.0.to.0: there is no person 9: people are numbered 0 to 4",
    ),
    (ROOM + "events: [{goal: be kind, to: Ada}]", "3:30: events.0.to: expected a list, found 'Ada'"),
    (
        TWO + "worlds: [room]\nevents: [{goal: be kind, to: [Adda]}]",
        "3:31: events.0.to.0: unknown person 'Adda'; did you mean 'Ada'?",
    ),
    (ROOM + "events: [{see: a light, round: 99}]", "3:32: events.0.round: round 99 never comes: the run has 24 rounds"),
    (ROOM + "events: [{see: a light, round: 0}]", "3:32: events.0.round: must be at least 1, found 0"),
    (ROOM + "events: [{location: [a]}]", "3:21: events.0.location: expected text, found a list"),
    (ROOM + "events: [{herr: a bell}]", "3:11: events.0.herr: unknown field 'herr'; did you mean 'hear'?"),
    (ROOM + "events: [{hear: null}]", "3:17: events.0.hear: expected text, found nothing"),
    (FIVE + "events: [{change: {}}]", "2:19: events.0.change: must not be empty"),
    (FIVE + "events: [{change: stance}]", "2:19: events.0.change: expected a mapping, found 'stance'"),
    (
        FIVE + "events: [{change: {stance: 0.5}, to: [7]}]",
        "2:39: events.0.to.0: there is no person 7: people are numbered 0 to 4",
    ),
    (FIVE + "events: [{mute: []}]", "2:17: events.0.mute: must not be empty"),
    (FIVE + "events: [{mute: Ada}]", "2:17: events.0.mute: expected a list, found 'Ada'"),
    (FIVE + "events: [{mute: [7]}]", "2:18: events.0.mute.0: there is no person 7: people are numbered 0 to 4"),
    (TWO + "events: [{mute: [Bne]}]", "2:18: events.0.mute.0: unknown person 'Bne'; did you mean 'Ben'?"),
    (FIVE + "events: [{mute: [1], rounds: 0}]", "2:30: events.0.rounds: must be at least 1, found 0"),
    (FIVE + "events: [{mute: [1], rounds: some}]", "2:30: events.0.rounds: expected a whole number, found 'some'"),
    (FIVE + "events: [{stop: true}]", "2:17: events.0.stop: expected text, found true; put it in quotes"),
    (FIVE + "events: [{stop: enough, round: 99}]", "2:32: events.0.round: round 99 never comes: the run has 24 rounds"),
    (FIVE + "events: [{stop: enough, to: [1]}]", "2:25: events.0.to: unknown field 'to'; did you mean 'stop'?"),
    (
        FIVE + "events: [{skip: soon}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found 'soon'",
    ),
    (
        FIVE + "events: [{skip: 3 fortnights}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found '3 fortnights'",
    ),
    (
        FIVE + "events: [{skip: 0}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found 0",
    ),
    (
        FIVE + "events: [{skip: -3 days}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found '-3 days'",
    ),
    (
        FIVE + "events: [{skip: 0.5 minutes}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found '0.5 minutes'",
    ),
    (
        FIVE + "events: [{skip: true}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found true",
    ),
    (
        FIVE + "events: [{skip: 2000 years}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found '2000 years'",
    ),
    (
        FIVE + "events: [{skip: 99999999 days}]",
        "2:17: events.0.skip: expected at most 1,000 years, found '99999999 days'",
    ),
    (
        FIVE + "events: [{skip: [3, days]}]",
        "2:17: events.0.skip: expected a time such as 3 days, 2 hours or 90 minutes, found a list",
    ),
    (FIVE + "events: [{skip: 3 days, world: twitter}]", "2:25: events.0.world: unknown field 'world'"),
    (FIVE + "events: [{skip: 3 days, round: 99}]", "2:32: events.0.round: round 99 never comes: the run has 24 rounds"),
    (
        FIVE + "time: {start: '9990-01-01'}\nevents: [{skip: 900 weeks}]",
        "1:1: 24 rounds of 60 minutes and 9072000 minutes skipped end after the year 9999",
    ),
    (
        FIVE + "interventions: {when: round > 1, do: {stop: enough}}",
        "2:16: interventions: expected a list, found a mapping",
    ),
    (
        FIVE + "interventions: [{when: round > 1}]",
        "2:17: interventions.0: nothing happens: it needs `do` or `call`",
    ),
    (
        FIVE + "interventions: [{do: {stop: enough}}]",
        "2:17: interventions.0: it needs `when`, `check` or `judge`",
    ),
    (
        FIVE + "interventions: [{when: round, do: {stop: enough}}]",
        "2:24: interventions.0.when: 'round' is not a question; compare it with something, for example round >= 5",
    ),
    (
        FIVE + "interventions: [{when: rund > 3, do: {stop: enough}}]",
        "2:24: interventions.0.when: unknown fact 'rund'; did you mean 'round'?",
    ),
    (
        FIVE + "interventions: [{when: 5, do: {stop: enough}}]",
        "2:24: interventions.0.when: expected text, found 5; put it in quotes",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: []}]",
        "2:17: interventions.0: nothing happens: it needs `do` or `call`",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: stop}]",
        "2:39: interventions.0.do: expected an event such as {post: text} or {broadcast: text}, found 'stop'",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stpo: enough}}]",
        "2:40: interventions.0.do.stpo: unknown field 'stpo'; did you mean 'stop'?",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stop: enough, round: 5}}]",
        "2:61: interventions.0.do.round: round has no place here: it happens when and where the condition holds",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: [{broadcast: a}, {broadcast: b, world: twitter}]}]",
        "2:78: interventions.0.do.1.world: world has no place here: it happens when and where the condition holds",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {skip: 3 days}}]",
        "2:39: interventions.0.do: time cannot be skipped by an intervention; schedule it under `events`",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stop: enough}, times: 0}]",
        "2:62: interventions.0.times: must be at least 1, found 0",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stop: enough}, pause: -1}]",
        "2:62: interventions.0.pause: must be at least 0, found -1",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stop: enough}, world: reddit}]",
        "2:62: interventions.0.world: unknown world 'reddit'; there is twitter",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {stop: enough}, time: 3}]",
        "2:55: interventions.0.time: unknown field 'time'; did you mean 'times'?",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {hear: a bell}}]",
        "2:46: interventions.0.do.hear: 'hear' cannot happen in any of its worlds",
    ),
    (
        FIVE + "worlds: [twitter, room]\ninterventions: [{when: round > 1, do: {hear: a bell}, world: twitter}]",
        "3:46: interventions.0.do.hear: 'hear' cannot happen in 'twitter'",
    ),
    (
        FIVE + "interventions: [{when: round > 1, do: {mute: [9]}}]",
        "2:47: interventions.0.do.mute.0: there is no person 9: people are numbered 0 to 4",
    ),
    (
        TWO + 'interventions: [{when: quiet("Adda") > 1, do: {stop: enough}}]',
        "2:24: interventions.0.when: unknown person 'Adda'; did you mean 'Ada'?",
    ),
    (
        FIVE + 'interventions: [{when: by("Ada") > 1, do: {stop: enough}}]',
        "2:24: interventions.0.when: unknown person 'Ada'; only people listed with a name can be called by "
        "it, others by number",
    ),
    (
        FIVE + 'interventions: [{when: count("CREATE_PSOT") > 1, do: {stop: enough}}]',
        "2:24: interventions.0.when: unknown action 'CREATE_PSOT'; did you mean 'CREATE_POST'?",
    ),
    (
        FIVE + 'worlds: [twitter, room]\ninterventions: [{when: total("TALKK") > 1, do: {stop: enough}, world: room}]',
        "3:24: interventions.0.when: unknown action 'TALKK'; did you mean 'TALK'?",
    ),
    (
        FIVE + "worlds: {twitter: {visibility: 2}}\ninterventions: [{when: mean_opinion > 0, do: {stop: enough}}]",
        "3:24: interventions.0.when: opinions are only known where visibility is 1: with more, rounds overlap",
    ),
    (FIVE + "worlds: [rom]", "2:10: worlds.0: unknown world 'rom'; did you mean 'room'?"),
    (
        FIVE + "worlds: {square: {kind: dialog}}",
        "2:25: worlds.square.kind: unknown kind of world 'dialog', expected twitter, reddit, room or "
        "dialogue; did you mean 'dialogue'?",
    ),
    (
        FIVE + "worlds: {square: {kind: forum}}",
        "2:25: worlds.square.kind: unknown kind of world 'forum', expected twitter, reddit, room or dialogue;"
        " a world of your own is named as module:Class",
    ),
    (
        FIVE + "worlds: {square: {kind: 5}}",
        "2:25: worlds.square.kind: unknown kind of world 5, expected twitter, reddit, room or dialogue; a "
        "world of your own is named as module:Class",
    ),
    (
        FIVE + "worlds: {square: {kind: room, turn: parallel}}",
        "2:31: worlds.square.turn: unknown field 'turn'; did you mean 'turns'?",
    ),
    (
        FIVE + "worlds: {room: {turns: parallell}}",
        "2:24: worlds.room.turns: expected parallel or sequential, found 'parallell'; did you mean 'parallel'?",
    ),
    (
        FIVE + "worlds: {room: {hearing: nobody}}",
        "2:26: worlds.room.hearing: expected everyone, neighbours, relations or pairs, found 'nobody'",
    ),
    (FIVE + "worlds: {room: {quiet_rounds: 0}}", "2:31: worlds.room.quiet_rounds: must be at least 1, found 0"),
    (
        FIVE + "worlds: {room: {actions: [TALK, WALK]}}",
        "2:33: worlds.room.actions.1: unknown action 'WALK'; did you mean 'TALK'?",
    ),
    (
        TWO + "worlds: {room: {relations: [{between: [Ada, Bne], relation: sisters}]}}",
        "2:45: worlds.room.relations.0.between.1: unknown person 'Bne'; did you mean 'Ben'?",
    ),
    (
        TWO + "worlds: {room: {relations: [{between: [Ada], relation: sisters}]}}",
        "2:39: worlds.room.relations.0.between: expected a list of two values, found 1",
    ),
    (
        TWO + "worlds: {room: {relations: [{between: [Ada, 7], relation: sisters}]}}",
        "2:45: worlds.room.relations.0.between.1: there is no person 7: people are numbered 0 to 1",
    ),
    (
        TWO + "worlds: {room: {relations: [{between: [Ada, Ben]}]}}",
        "2:29: worlds.room.relations.0: missing field 'relation'",
    ),
    (
        TWO + "worlds: {room: {relations: [{between: [Ada, Ada], relation: sisters}]}}",
        "2:39: worlds.room.relations.0.between: 'Ada' cannot be related to themselves",
    ),
    (
        TWO + "worlds: {dialogue: {pairs: [[Ada, Bne]]}}",
        "2:35: worlds.dialogue.pairs.0.1: unknown person 'Bne'; did you mean 'Ben'?",
    ),
    (
        TWO + "worlds: {dialogue: {pairs: [[Ada, Ada]]}}",
        "2:29: worlds.dialogue.pairs.0: 'Ada' cannot talk to themselves",
    ),
    (TWO + "worlds: {dialogue: {pairs: [[0, Ada]]}}", "2:29: worlds.dialogue.pairs.0: 0 cannot talk to themselves"),
    (
        TWO + "worlds: {dialogue: {pairs: some}}",
        "2:28: worlds.dialogue.pairs: expected listed or random, a mapping or a list, found 'some'",
    ),
    (TWO + "worlds: {dialogue: {turns: 0}}", "2:28: worlds.dialogue.turns: must be at least 1, found 0"),
    (TWO + "worlds: {dialogue: {scenes: []}}", "2:29: worlds.dialogue.scenes: must not be empty"),
    (
        TWO + "worlds: {dialogue: {scenes: [{turn: 3}]}}",
        "2:31: worlds.dialogue.scenes.0.turn: unknown field 'turn'; did you mean 'turns'?",
    ),
    (
        TWO + "worlds: {dialogue: {stop: {agreement: 3}}}",
        "2:39: worlds.dialogue.stop.agreement: must be at most 2, found 3",
    ),
    (
        FIVE + "worlds: {pot: {kind: 'a:B', setings: {}}}",
        "2:29: worlds.pot.setings: unknown field 'setings'; did you mean 'settings'?",
    ),
    (FIVE + "worlds: {pot: {kind: 'a:B', settings: 5}}", "2:39: worlds.pot.settings: expected a mapping, found 5"),
    (
        FIVE + "mind: heuristics",
        "2:7: mind: unknown mind 'heuristics', expected heuristic, scripted or language; did you mean 'heuristic'?",
    ),
    (
        FIVE + "mind: {kind: 'a:B', setings: {}}",
        "2:21: mind.setings: unknown field 'setings'; did you mean 'settings'?",
    ),
    (FIVE + "mind: {kind: llm}", "2:14: mind.kind: unknown mind 'llm', expected heuristic, scripted or language"),
    (FIVE + "metrics: maybe", "2:10: metrics: expected true or false, found 'maybe'"),
    (FIVE + "worlds: {room: 5}", "2:16: worlds.room: expected a mapping of settings such as {kind: room}, found 5"),
    (FIVE + "worlds: {room: {visibility: 2}}", "2:17: worlds.room.visibility: unknown field 'visibility'"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[text for text, _ in WRONG])
def test_a_mistake_is_reported_once_with_line_and_column(text: str, expected: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    assert caught.value.problems == [f"f.yaml:{expected}"]


def test_a_person_in_two_conversations_is_refused() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse(TWO + "worlds: {dialogue: {pairs: [[Ada, Ben], [1, 0]]}}", "f.yaml")
    assert caught.value.problems == [
        "f.yaml:2:42: worlds.dialogue.pairs.1.0: 1 is already in pair 0; nobody can be in two",
        "f.yaml:2:45: worlds.dialogue.pairs.1.1: 0 is already in pair 0; nobody can be in two",
    ]


def test_problems_beside_a_wrong_event_or_condition_are_reported_too() -> None:
    text = """\
population: {count: 5}
worlds: [room]
events:
  - {hear: 5, round: 99}
  - {skip: soon, round: 98}
  - {mute: [8], rounds: 0}
interventions:
  - {when: round, do: {mute: [9]}}
"""
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    assert caught.value.problems == [
        "f.yaml:4:12: events.0.hear: expected text, found 5; put it in quotes",
        "f.yaml:4:22: events.0.round: round 99 never comes: the run has 24 rounds",
        "f.yaml:5:12: events.1.skip: expected a time such as 3 days, 2 hours or 90 minutes, found 'soon'",
        "f.yaml:5:25: events.1.round: round 98 never comes: the run has 24 rounds",
        "f.yaml:6:13: events.2.mute.0: there is no person 8: people are numbered 0 to 4",
        "f.yaml:6:25: events.2.rounds: must be at least 1, found 0",
        "f.yaml:8:12: interventions.0.when: 'round' is not a question; compare it with something, for example "
        "round >= 5",
        "f.yaml:8:31: interventions.0.do.mute.0: there is no person 9: people are numbered 0 to 4",
    ]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("3 days", 4320),
        ("1 day", 1440),
        ("2 hours", 120),
        ("1.5 Hours", 90),
        ("90 minutes", 90),
        ("2weeks", 20160),
        (30, 30),
    ],
)
def test_a_time_to_skip_is_read_from_text_or_minutes(text: str | int, minutes: int) -> None:
    events = parse(f"population: {{count: 5}}\nevents: [{{skip: {text}}}]", "f.yaml").events
    assert [event.model_dump()["skip"] for event in events] == [minutes]


def test_every_kind_of_event_survives_storing_and_reading() -> None:
    kinds = "{hear: a}, {see: a}, {think: a}, {goal: a}, {location: a, to: [1]}, {change: {stance: 1}}, {mute: [1]}"
    text = (
        f"population: {{count: 5}}\nworlds: [room]\nevents: [{kinds}, {{stop: a}}, {{skip: 1 day}}, {{broadcast: a}}]"
    )
    scenario = parse(text, "f.yaml")
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario


@pytest.mark.parametrize(
    ("mind", "expected"),
    [
        ("{kind: language}", "mind: missing field 'model'"),
        ("{kind: language, model: m, by_group: {expert: m}}", "unknown group 'expert'; did you mean 'experts'?"),
        ("{kind: language, model: m, by_agent: {Adda: m}}", "unknown person 'Adda'; did you mean 'Ada'?"),
        ("{kind: language, model: m, max_tokens: 3}", "mind.max_tokens"),
    ],
)
def test_an_invalid_language_mind_is_refused(mind: str, expected: str) -> None:
    text = f"population: [{{name: Ada}}, {{count: 3, group: experts}}]\nmind: {mind}"
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    (problem,) = caught.value.problems
    assert expected in problem
