"""Messages about wrong scenarios: one line per mistake, with line, column, path and the nearest valid word."""

from __future__ import annotations

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario import sample
from shoal.scenario.loading import parse, validate

ENTRY = "a person (`name`), a group (`count`), a `file` of people, tables (`marginals`) or an `assistant`"

#: A wrong file, and what is said about it after the file's name.
WRONG = [
    (
        "population: []\nevents: [{post: Hello!}]",
        "2:10: events.0: there is nobody who could post",
    ),
    ("popultion: {count: 5}", "1:1: popultion: unknown field 'popultion'; did you mean 'population'?"),
    ("population: {count: 5}\nrouns: 3", "2:1: rouns: unknown field 'rouns'; did you mean 'rounds'?"),
    ("rounds: 3", "1:1: missing field 'population'; for example population: {count: 200}"),
    ("population: {count: many}", "1:21: population.count: expected a whole number, found 'many'"),
    ("population: {count: 0}", "1:21: population.count: must be at least 1, found 0"),
    ("population: {count: 2.5}", "1:21: population.count: expected a whole number, found 2.5"),
    ("population: {cout: 5}", "1:14: population.cout: unknown field 'cout'; did you mean 'count'?"),
    (
        "population: {}",
        f"1:13: population: expected {ENTRY}, found an empty mapping",
    ),
    (
        "population: 200",
        "1:13: population: expected a group such as {count: 200}, or a list of groups and people, found 200",
    ),
    (
        "population:\n- 200\n- {count: 3}",
        f"2:3: population.0: expected {ENTRY}, found 200",
    ),
    (
        "population:\n- {name: Bo, count: 3}",
        "2:3: population.0: an entry is a person (`name`) or a group (`count`), not both; label a group with `group`",
    ),
    (
        "population:\n- {age: 3}",
        f"2:3: population.0: expected {ENTRY}, found none of them",
    ),
    (
        "population: {count: 5, age: old}",
        "1:29: population.age: expected a number or a distribution such as {normal: [40, 12]}, found 'old'",
    ),
    (
        "population: {count: 5, age: {norml: [40, 12]}}",
        "1:30: population.age.norml: unknown distribution 'norml', expected normal, uniform, beta or "
        "choice; did you mean 'normal'?",
    ),
    ("population: {count: 5, age: {normal: 40}}", "1:38: population.age.normal: expected a list, found 40"),
    (
        "population: {count: 5, age: {normal: [40]}}",
        "1:38: population.age.normal: expected a list of two values, found 1",
    ),
    ("population: {count: 5, age: {normal: [40, -1]}}", "1:43: population.age.normal.1: must be at least 0, found -1"),
    (
        "population: {count: 5, age: {normal: [40, 1], uniform: [1, 2]}}",
        "1:29: population.age: a distribution is one of normal, uniform, beta or choice, found normal or uniform",
    ),
    (
        "population: {count: 5, age: {normal: [40, 1], mni: 3}}",
        "1:47: population.age.mni: unknown field 'mni'; did you mean 'min'?",
    ),
    (
        "population: {count: 5, age: {uniform: [40, 20]}}",
        "1:39: population.age.uniform: the lower end (40) is above the upper (20)",
    ),
    (
        "population: {count: 5, age: {uniform: [40, 200]}}",
        "1:44: population.age.uniform.1: must be between 0 and 120, found 200",
    ),
    ("population: {count: 5, age: {beta: [0, 2]}}", "1:37: population.age.beta.0: must be at least 0.01, found 0"),
    ("population: {count: 5, age: 200}", "1:29: population.age: must be between 0 and 120, found 200"),
    (
        "population: {count: 5, age: {choice: {young: 1}}}",
        "1:39: population.age.choice.young: expected a number, found 'young'",
    ),
    ("population: {count: 5, age: {choice: {18: x}}}", "1:43: population.age.choice.18: expected a number, found 'x'"),
    (
        "population: {count: 5, stance: suportive}",
        "1:32: population.stance: expected a number from -1 to 1, supportive, opposing, neutral or "
        "observer, found 'suportive'; did you mean 'supportive'?",
    ),
    (
        "population: {count: 5, stance: {choice: {for: 1}}}",
        "1:42: population.stance.choice.for: expected a number, found 'for'",
    ),
    (
        "population: {count: 5, activity: true}",
        "1:34: population.activity: expected a number or a distribution such as {normal: [40, 12]}, found true",
    ),
    (
        "population: {count: 5, activity: {normal: [0.5, 0.1], min: 0.6, max: 0.2}}",
        "1:60: population.activity.min: min (0.6) is above max (0.2)",
    ),
    (
        "population: {count: 5, gender: femal}",
        "1:32: population.gender: unknown gender 'femal', expected female, male or other; did you mean 'female'?",
    ),
    (
        "population: {count: 5, gender: {female: 1, mal: 1}}",
        "1:44: population.gender.mal: unknown gender 'mal', expected female, male or other; did you mean 'male'?",
    ),
    ("population: {count: 5, country: {Kenya: -1}}", "1:41: population.country.Kenya: must be at least 0, found -1"),
    (
        "population: {count: 5, country: {Kenya: 0}}",
        "1:33: population.country: nothing to choose from: at least one weight must be above 0",
    ),
    (
        "population: {count: 5, country: 7}",
        "1:33: population.country: expected a word, a list of words, or weights such as {a: 2, b: 1}, found 7",
    ),
    ("population: {count: 5, profession: [nurse, 3]}", "1:44: population.profession.1: expected text, found 3"),
    (
        "population: {count: 5, interests: {pick: [3, 1], from: [a, b]}}",
        "1:42: population.interests.pick: expected two numbers, 0 to 8, the lower first, found [3, 1]",
    ),
    (
        "population: {count: 5, interests: {pick: [1, 2], form: [a, b]}}",
        "1:50: population.interests.form: unknown field 'form'; did you mean 'from'?",
    ),
    (
        "population: {count: 5, active_hours: 8-25}",
        "1:38: population.active_hours: expected hours from 0 to 23 such as 8-22 or 8-12,18-22, found '8-25'",
    ),
    (
        "population: {count: 5, active_hours: [8, 24]}",
        "1:42: population.active_hours.1: expected an hour from 0 to 23, found 24",
    ),
    (
        "population: {count: 5, traits: {income: {normal: [1, x]}}}",
        "1:54: population.traits.income.normal.1: expected a number, found 'x'",
    ),
    ("population: [{name: 12}]", "1:21: population.0.name: expected text, found 12; put it in quotes"),
    (
        "population: [{name: random}]",
        "1:21: population.0.name: 'random' cannot be a name: in events it stands for somebody else",
    ),
    (
        "population: [{name: Bo, gender: mail}]",
        "1:33: population.0.gender: expected female, male or other, found 'mail'; did you mean 'male'?",
    ),
    (
        "population: [{name: Bo, interests: [a, b, c, d, e, f, g, h, i]}]",
        "1:36: population.0.interests: at most 8 are possible, found 9",
    ),
    ("population: [{name: Bo, stance: 2}]", "1:33: population.0.stance: must be at most 1, found 2"),
    (
        "population: [{name: Bo, activty: 1}]",
        "1:25: population.0.activty: unknown field 'activty'; did you mean 'activity'?",
    ),
    ("population:\n- {name: Bo}\n- {name: Bo}", "3:10: population.1.name: 'Bo' is already the name of population.0"),
    ("population: [{name: Bo, follows: [Bo]}]", "1:35: population.0.follows.0: 'Bo' cannot follow themselves"),
    (
        "population: {count: 5}\nfollows: scalefree",
        "2:10: follows: unknown graph 'scalefree', expected scale-free, small-world, homophilous or "
        "none; did you mean 'scale-free'?",
    ),
    (
        "population: {count: 5}\nfollows: 3",
        "2:10: follows: expected scale-free, small-world, homophilous or none, or a mapping of settings, found 3",
    ),
    (
        "population: {count: 5}\nfollows: {graph: small-wrld}",
        "2:18: follows.graph: expected scale-free, small-world, homophilous or none, found "
        "'small-wrld'; did you mean 'small-world'?",
    ),
    (
        "population: {count: 5}\nfollows: {mean_degre: 3}",
        "2:11: follows.mean_degre: unknown field 'mean_degre'; did you mean 'mean_degree'?",
    ),
    ("population: {count: 5}\nfollows: {mean_degree: -3}", "2:24: follows.mean_degree: must be at least 0, found -3"),
    (
        "population: {count: 5}\nfollows: {edges: [[0, 5]]}",
        "2:23: follows.edges.0.1: there is no person 5: people are numbered 0 to 4",
    ),
    (
        "population: {count: 5}\nfollows: {edges: [[0]]}",
        "2:19: follows.edges.0: expected a list of two values, found 1",
    ),
    ("population: {count: 5}\nworlds: [twiter]", "2:10: worlds.0: unknown world 'twiter'; did you mean 'twitter'?"),
    (
        "population: {count: 5}\nworlds: twitter",
        "2:9: worlds: expected a list such as [twitter, reddit], or a mapping of names to settings, found 'twitter'",
    ),
    (
        "population: {count: 5}\nworlds: {square: {visibility: 2}}",
        "2:18: worlds.square: missing field 'kind'; a world that is not called twitter, reddit, room or "
        "dialogue must say which of them it is",
    ),
    (
        "population: {count: 5}\nworlds: {Square: {kind: twitter}}",
        "2:10: worlds.Square: 'Square' cannot name a world; use at most 40 small letters, digits, - and _",
    ),
    (
        "population: {count: 5}\nworlds: {twitter: {visability: 2}}",
        "2:20: worlds.twitter.visability: unknown field 'visability'; did you mean 'visibility'?",
    ),
    (
        "population: {count: 5}\nworlds: {twitter: {feed: {recomendation: hot}}}",
        "2:27: worlds.twitter.feed.recomendation: unknown field 'recomendation'; did you mean 'recommendation'?",
    ),
    (
        "population: {count: 5}\nworlds: {twitter: {feed: {recommendation: hott}}}",
        "2:43: worlds.twitter.feed.recommendation: expected hot, interest, meaning, random or none, found "
        "'hott'; did you mean 'hot'?",
    ),
    (
        "population: {count: 5}\nworlds: {twitter: {kind: redit}}",
        "2:26: worlds.twitter.kind: unknown kind of world 'redit', expected twitter, reddit, room or "
        "dialogue; did you mean 'reddit'?",
    ),
    (
        "population: {count: 5}\nworlds: {twitter: {actions: [LIKE_POSTS]}}",
        "2:30: worlds.twitter.actions.0: unknown action 'LIKE_POSTS'; did you mean 'LIKE_POST'?",
    ),
    (
        "population: {count: 5}\nmind: heuristc",
        "2:7: mind: unknown mind 'heuristc', expected heuristic, scripted or language; did you mean 'heuristic'?",
    ),
    ("population: {count: 5}\nmind: 3", "2:7: mind: expected heuristic, scripted, or a mapping of settings, found 3"),
    (
        "population: {count: 5}\nmind: {kind: llm}",
        "2:14: mind.kind: unknown mind 'llm', expected heuristic, scripted or language",
    ),
    (
        "population: {count: 5}\nmind: {confidnce: 1}",
        "2:8: mind.confidnce: unknown field 'confidnce'; did you mean 'confidence'?",
    ),
    ("population: {count: 5}\nmind: {confidence: 3}", "2:20: mind.confidence: must be at most 2, found 3"),
    ("population: {count: 5}\nmind: {latency: {sigma: 1}}", "2:17: mind.latency: missing field 'median_ms'"),
    (
        "population: {count: 5}\nmind: {kind: scripted, turns: [{round: 1, agent: 0, action: LIKE}]}",
        "2:61: mind.turns.0.action: unknown action 'LIKE'; did you mean 'LIKE_POST'?",
    ),
    (
        "population: {count: 5}\nmind: {kind: scripted, turns: [{round: 1, agent: 0, action: "
        "CREATE_POST, args: {contents: hi}}]}",
        "2:80: mind.turns.0.args: CREATE_POST needs 'content' among its args; is it 'contents'?",
    ),
    (
        "population: {count: 5}\nmind: {kind: scripted, turns: [{round: 1, agent: [1], action: TREND}]}",
        "2:50: mind.turns.0.agent: expected text or a whole number, found a list",
    ),
    ("population: {count: 5}\nevents: [{pots: hi}]", "2:11: events.0.pots: unknown field 'pots'; did you mean 'post'?"),
    (
        "population: {count: 5}\nevents: [hi]",
        "2:10: events.0: expected an event such as {post: text} or {broadcast: text}, found 'hi'",
    ),
    ("population: {count: 5}\nevents: {post: hi}", "2:9: events: expected a list, found a mapping"),
    (
        "population: {count: 5}\nevents: [{round: 2}]",
        "2:10: events.0: an event needs one of post, broadcast, hear, see, think, goal, location, change, context, "
        "mute, join, leave, suspend, cut, stop, seat, give_back or skip, found none of them",
    ),
    (
        "population: {count: 5}\nevents: [{post: hi, round: 25}]",
        "2:28: events.0.round: round 25 never comes: the run has 24 rounds",
    ),
    (
        "population: {count: 5}\nevents: [{broadcast: hi, round: 0}]",
        "2:33: events.0.round: must be at least 1, found 0",
    ),
    (
        "population: {count: 5}\nevents: [{post: hi, by: most_folowed}]",
        "2:25: events.0.by: unknown person 'most_folowed'; did you mean 'most_followed'?",
    ),
    (
        "population: {count: 5}\nevents: [{post: hi, by: 5}]",
        "2:25: events.0.by: there is no person 5: people are numbered 0 to 4",
    ),
    (
        "population: {count: 5}\nevents: [{post: hi, by: Zoe}]",
        "2:25: events.0.by: unknown person 'Zoe'; only people listed with a name can be called by it, others by number",
    ),
    (
        "population: {count: 5}\nevents: [{broadcast: hi, to: [7]}]",
        "2:31: events.0.to.0: there is no person 7: people are numbered 0 to 4",
    ),
    (
        "population: {count: 5}\nevents: [{post: hi, world: reddit}]",
        "2:28: events.0.world: unknown world 'reddit'; there is twitter",
    ),
    ("population: {count: 5}\nevents: [{post: hi, text: x}]", "2:21: events.0.text: unknown field 'text'"),
    ("population: {count: 5}\nevents: [{post: ''}]", "2:17: events.0.post: must not be empty"),
    (
        "population: {count: 5}\ntime: {start: tomorrow}",
        "2:15: time.start: expected a date and time such as 2026-01-01T08:00, found 'tomorrow'",
    ),
    (
        "population: {count: 5}\ntime: {start: 8}",
        "2:15: time.start: expected a date and time such as 2026-01-01T08:00, found 8",
    ),
    (
        "population: {count: 5}\ntime: {minutes_per_round: true}",
        "2:27: time.minutes_per_round: expected a whole number, found true",
    ),
    (
        "population: {count: 5}\ntime: {daily_rhythm: maybe}",
        "2:22: time.daily_rhythm: expected true or false, found 'maybe'",
    ),
    ("population: {count: 5}\ntime: {peak_hours: [24]}", "2:21: time.peak_hours.0: must be at most 23, found 24"),
    ("population: {count: 5}\ntime: {peak_hours: 20}", "2:20: time.peak_hours: expected a list, found 20"),
    ("population: {count: 5}\ntime: 3", "2:7: time: expected a mapping of settings, found 3"),
    ("population: {count: 5}\ntime:", "2:6: time: expected a mapping of settings, found nothing"),
    (
        "population: {count: 5}\nrounds: 1000000\ntime: {minutes_per_round: 10080}",
        "2:9: rounds: 1000000 rounds of 10080 minutes end after the year 9999",
    ),
    ("population: {count: 5}\nrounds: 0", "2:9: rounds: must be at least 1, found 0"),
    ("population: {count: 5}\nrounds: '5'", "2:9: rounds: expected a whole number, found '5'"),
    (
        "population: {count: 5}\nname: my scenario",
        "2:7: name: expected letters, digits, - and _ only, found 'my scenario'",
    ),
    ("population: {count: 5}\ntopic: 2024", "2:8: topic: expected text, found 2024; put it in quotes"),
    ("population: {count: 5}\nmax_workers: 0", "2:14: max_workers: must be at least 1, found 0"),
    (
        "population: {count: 5}\ndeadline_seconds: .inf",
        "2:19: deadline_seconds: expected a finite number, found '.inf'",
    ),
    ("population: {count: 5}\ndeadline_seconds: 0", "2:19: deadline_seconds: must be more than 0, found 0"),
    ("population: {count: 5}\nseed: 1\nseed: 2", "3:1: seed: the key 'seed' is already in line 2"),
    (
        "population: {count: 5\nrounds: 3",
        "2:7: cannot be read as YAML: did not find expected ',' or '}' while parsing a flow mapping; a "
        "bracket is not closed, or a comma is missing",
    ),
    (
        "population: {count: 5}\n\trounds: 3",
        "2:1: cannot be read as YAML: found character that cannot start any token while scanning for "
        "the next token; indent with spaces, not tabs; put text that begins with @ or ` in quotes",
    ),
    (
        "topic: bridge: old\npopulation: {count: 5}",
        "1:14: cannot be read as YAML: mapping values are not allowed in this context; put text that "
        "contains ': ' in quotes",
    ),
    ("- population: {count: 5}", "1:1: expected a mapping such as population: {count: 200}, found a list"),
    ("just text", "1:1: expected a mapping such as population: {count: 200}, found 'just text'"),
    (
        "population: {count: 5}\n---\nrounds: 3",
        "2:1: a second document begins here ('---'); a scenario is one document",
    ),
    ("population: *x", "1:13: '*x' stands for nothing: there is no '&x' that ends before it"),
    ("population: &x [*x]", "1:17: '*x' stands for nothing: there is no '&x' that ends before it"),
    (
        "population: !!python/object:os.system {count: 5}",
        "1:13: tags such as 'tag:yaml.org,2002:python/object:os.system' are not used in scenarios",
    ),
    ("population: !foo 5", "1:13: tags such as '!foo' are not used in scenarios"),
    ("? [a, b]\n: 3", "1:3: a key must be plain text"),
    (
        "population: {count: 5, name: ~}",
        "1:13: population: an entry is a person (`name`) or a group (`count`), not both; label a group with `group`",
    ),
    ("population: [{name: ~}]", "1:21: population.0.name: expected text, found nothing"),
    (
        "population: [{count: 6000000}, {count: 6000000}]",
        "1:13: population: 12,000,000 people in all; at most 10,000,000 are possible",
    ),
    ('{"population": {"count": 5,}, "rounds": "x"}', "1:41: rounds: expected a whole number, found 'x'"),
    (
        "population: {count: 5, stance: {uniform: [-2, 1]}}",
        "1:43: population.stance.uniform.0: must be between -1 and 1, found -2",
    ),
    (
        "population: {count: 5, activity: {choice: {2: 1}}}",
        "1:47: population.activity.choice.2: must be between 0 and 1, found 2",
    ),
    (
        "population: [{name: Bo, active_hours: eight}]",
        "1:39: population.0.active_hours: expected hours from 0 to 23 such as 8-22 or 8-12,18-22, found 'eight'",
    ),
    (
        "population: [{name: Bo, username: B}, {name: Al, username: b}]",
        "1:60: population.1.username: 'b' is already the username of population.0",
    ),
    (
        "population: {count: 5}\nworlds: {ipc_commands: {kind: twitter}}",
        "2:10: worlds.ipc_commands: a world cannot be called 'ipc_commands': a run keeps a folder of that name",
    ),
    ("population: {count: 5}\nworlds: [twitter, twitter]", "2:19: worlds.1: world 'twitter' is listed twice"),
    (
        "population: {count: 5}\nevents: [{post: a, broadcast: b}]",
        "2:10: events.0: an event is one thing, found post and broadcast; write them as two events",
    ),
    (
        "population: {count: 5}\ntime: {agents_per_hour_min: 9, agents_per_hour_max: 3}",
        "2:29: time.agents_per_hour_min: the minimum (9) is above agents_per_hour_max (3)",
    ),
    (
        "population: {count: 5, country: no, age: {normal: [40, 9], min: 150}}",
        "1:65: population.age.min: must be between 0 and 120, found 150",
    ),
]


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[text for text, _ in WRONG])
def test_a_mistake_is_reported_once_with_line_and_column(text: str, expected: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    assert caught.value.problems == [f"f.yaml:{expected}"]


@pytest.mark.parametrize("text", [text for text, _ in WRONG])
def test_messages_do_not_show_the_validator(text: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    assert not any(word in str(caught.value) for word in ("Input should", "pydantic", "<", "Settings", "validation"))


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = """\
rounds: 5
population:
  - {name: Anna, agee: 30}
  - {count: 5, age: old, gender: femal}
  - {name: Bo, follows: [Ana]}
worlds: {twitter: {visibility: 0}}
events:
  - {post: hi, by: Boo, round: 9}
  - {post: "", world: redit}
  - {broadcast: hi, to: [99]}
follows: {graph: smallworld, edges: [[0, 0]]}
"""
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "f.yaml")
    assert caught.value.problems == [
        "f.yaml:3:18: population.0.agee: unknown field 'agee'; did you mean 'age'?",
        "f.yaml:4:21: population.1.age: expected a number or a distribution such as {normal: [40, 12]}, found 'old'",
        "f.yaml:4:34: population.1.gender: unknown gender 'femal', expected female, male or other; did "
        "you mean 'female'?",
        "f.yaml:5:26: population.2.follows.0: unknown person 'Ana'; did you mean 'Anna'?",
        "f.yaml:6:32: worlds.twitter.visibility: must be at least 1, found 0",
        "f.yaml:8:20: events.0.by: unknown person 'Boo'; did you mean 'Bo'?",
        "f.yaml:8:32: events.0.round: round 9 never comes: the run has 5 rounds",
        "f.yaml:9:12: events.1.post: must not be empty",
        "f.yaml:9:23: events.1.world: unknown world 'redit'; there is twitter",
        "f.yaml:10:26: events.2.to.0: there is no person 99: people are numbered 0 to 6",
        "f.yaml:11:18: follows.graph: expected scale-free, small-world, homophilous or none, found 'smallworld'"
        "; did you mean 'small-world'?",
        "f.yaml:11:38: follows.edges.0: 0 cannot follow themselves",
    ]


def test_two_fields_missing_in_one_place_are_two_mistakes() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse("population: {count: 5}\nmind: {kind: scripted, turns: [{round: 1}]}", "f.yaml")
    assert caught.value.problems == [
        "f.yaml:2:32: mind.turns.0: missing field 'action'",
        "f.yaml:2:32: mind.turns.0: missing field 'agent'",
    ]


def test_a_broken_population_causes_no_reports_of_unknown_people() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse("population: {count: x}\nevents: [{post: hi, by: 3}, {post: hi, round: 99}]", "f.yaml")
    assert caught.value.problems == [
        "f.yaml:1:21: population.count: expected a whole number, found 'x'",
        "f.yaml:2:47: events.1.round: round 99 never comes: the run has 24 rounds",
    ]


def test_more_posts_by_one_author_than_a_round_can_number_are_refused_once() -> None:
    posts = "".join(f"- {{post: p{number}, by: 1}}\n" for number in range(40))
    with pytest.raises(ScenarioInvalid) as caught:
        parse(f"population: {{count: 5}}\nevents:\n{posts}", "f.yaml")
    assert caught.value.problems == ["f.yaml:35:3: events.32: more than 32 posts by 1 in round 0"]


def test_aliases_cannot_expand_without_limit() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ScenarioInvalid, match="aliases repeat more than 100,000 values"):
        parse("\n".join(lines), "f.yaml")


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(ScenarioInvalid, match="1:41: nested more than 40 levels deep"):
        parse("[" * 200_000, "f.yaml")


def test_traits_are_made_storable() -> None:
    traits = {"mood": "half \ud83d", "debt": 10**400, "luck": float("nan"), "\ud800": [{"deep": "\udc00"}]}
    scenario = validate({"population": [{"name": "Ada", "traits": traits}], "worlds": ["room"]})
    # What is null is left out.
    assert sample(scenario)[0].traits == {"mood": "half \ufffd", "\ufffd": [{"deep": "\ufffd"}]}
