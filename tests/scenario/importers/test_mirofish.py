"""A directory that MiroFish prepared: every field of it has its effect."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.events import BroadcastEvent, PostEvent
from shoal.scenario.declared.population import PersonEntry
from shoal.scenario.importers.detect import import_path
from shoal.scenario.importers.fields import Use
from shoal.scenario.importers.mirofish import import_mirofish, is_mirofish
from shoal.scenario.loading import load, override
from shoal.types import Decision
from shoal.worlds.social.settings import SocialSettings
from tests.scenario.importers.mirofish_directory import (
    AGAINST,
    FIRST_POST,
    FOR,
    MISSING,
    PEOPLE,
    REQUIREMENT,
    TOPIC,
    UNCHANGED,
    Changes,
    DrivenPlatform,
    counts,
    import_directory,
    mean_lean,
    mean_slant,
    run_lines,
    scenario,
    texts,
    write_directory,
)

NUMBERS = range(len(PEOPLE))


def person(folder: Path, number: int, changes: Changes = UNCHANGED) -> PersonEntry:
    found = scenario(folder, changes).population[number]
    assert isinstance(found, PersonEntry)
    return found


def uses(folder: Path, changes: Changes = UNCHANGED) -> dict[str, Use]:
    return {use.field: use.use for use in import_directory(folder, changes).fields}


# the whole


def test_a_prepared_directory_becomes_a_scenario_and_runs(tmp_path: Path) -> None:
    lines = run_lines(tmp_path)
    assert counts(lines)["CREATE_POST"] > 0
    assert {line["agent_name"] for line in lines if "agent_name" in line} == {name for name, _ in PEOPLE}


def test_both_platforms_are_worlds(tmp_path: Path) -> None:
    assert list(scenario(tmp_path).worlds) == ["twitter", "reddit"]


def test_no_field_is_missing_from_the_account(tmp_path: Path) -> None:
    found = {(use.source, use.field) for use in import_directory(tmp_path).fields}
    config = json.loads((tmp_path / "simulation_config.json").read_text())
    assert {("simulation_config.json", path) for path in leaves(config)} <= found
    profiles = json.loads((tmp_path / "reddit_profiles.json").read_text())
    assert {("reddit_profiles.json", f"[].{name}") for name in profiles[0]} <= found
    header = (tmp_path / "twitter_profiles.csv").read_text().splitlines()[0]
    assert {("twitter_profiles.csv", f"[].{name}") for name in header.split(",")} <= found


def leaves(value: Any, path: str = "") -> set[str]:
    """The paths of all fields of a configuration."""
    if isinstance(value, dict):
        return {leaf for key, below in value.items() for leaf in leaves(below, f"{path}.{key}".lstrip("."))}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {leaf for below in value for leaf in leaves(below, f"{path}[]")}
    return {path}


def test_fields_are_reported_in_the_order_of_the_file(tmp_path: Path) -> None:
    told = [use.field for use in import_directory(tmp_path).fields if use.source == "simulation_config.json"]
    assert (told[0], told[4], told[-1]) == (
        "simulation_id",
        "time_config.total_simulation_hours",
        "generation_reasoning",
    )


def test_fields_of_people_are_counted(tmp_path: Path) -> None:
    count = {use.field: use.count for use in import_directory(tmp_path).fields}
    assert count["agent_configs[].stance"] == len(PEOPLE)


def test_unknown_fields_are_reported_and_not_dropped(tmp_path: Path) -> None:
    changes = {
        "flavour": "salty",
        "time_config.moon": 1,
        "agent_configs.0.pet": "cat",
        "event_config.weather": "rain",
        "twitter_config.colour": "blue",
    }
    found = uses(tmp_path, changes)
    assert found["flavour"] == found["agent_configs[].pet"] == "kept"
    assert found["time_config.moon"] == found["event_config.weather"] == found["twitter_config.colour"] == "unused"
    assert load(tmp_path).notes["flavour"] == "salty"
    assert person(tmp_path, 0, changes).traits["pet"] == "cat"


def test_values_can_be_changed_as_in_any_scenario(tmp_path: Path) -> None:
    changed = override(scenario(tmp_path), ["rounds=3", "population.2.stance=0.25"])
    assert changed.rounds == 3
    assert getattr(changed.population[2], "stance", None) == 0.25


def test_a_directory_with_nothing_but_a_list_of_agents_is_enough(tmp_path: Path) -> None:
    (tmp_path / "simulation_config.json").write_text('{"agent_configs": [{"agent_id": 0}, {"agent_id": 1}]}')
    found = load(tmp_path)
    assert [getattr(entry, "name", None) for entry in found.population] == ["Agent 0", "Agent 1"]
    assert (found.rounds, list(found.worlds), found.time.minutes_per_round) == (72, ["twitter"], 60)


def test_missing_fields_have_the_defaults_of_mirofish(tmp_path: Path) -> None:
    (tmp_path / "simulation_config.json").write_text('{"agent_configs": [{}], "reddit_config": {}}')
    found = load(tmp_path)
    [somebody] = found.population
    assert isinstance(somebody, PersonEntry)
    assert somebody.model_dump(include={"activity", "posts_per_hour", "comments_per_hour", "response_delay"}) == {
        "activity": 0.5,
        "posts_per_hour": 1.0,
        "comments_per_hour": 2.0,
        "response_delay": (5, 60),
    }
    assert somebody.active_hours == tuple(range(8, 23))
    assert (found.time.agents_per_hour_min, found.time.agents_per_hour_max) == (5, 20)
    reddit = found.worlds["reddit"]
    assert isinstance(reddit, SocialSettings)
    assert (reddit.feed.recency, reddit.feed.viral_threshold, reddit.feed.echo_chamber) == (0.3, 15, 0.6)


# what the run is about


def test_simulation_id_is_the_name(tmp_path: Path) -> None:
    assert scenario(tmp_path, {"simulation_id": "sim_fish 42"}).name == "sim_fish-42"


def test_without_an_id_the_directory_is_the_name(tmp_path: Path) -> None:
    assert scenario(tmp_path / "harbour", {"simulation_id": MISSING}).name == "harbour"


@pytest.mark.parametrize("field", ["project_id", "graph_id", "llm_model", "llm_base_url", "generation_reasoning"])
def test_fields_that_only_mirofish_needs_are_kept_as_notes(tmp_path: Path, field: str) -> None:
    assert scenario(tmp_path, {field: "something"}).notes[field] == "something"
    assert uses(tmp_path)[field] == "kept"


def test_simulation_requirement_is_the_topic_and_kept_whole(tmp_path: Path) -> None:
    found = scenario(tmp_path)
    assert found.topic == TOPIC
    assert found.notes["simulation_requirement"] == REQUIREMENT


def test_a_requirement_without_an_end_is_cut_between_words(tmp_path: Path) -> None:
    topic = scenario(tmp_path, {"simulation_requirement": "word " * 100}).topic
    assert topic is not None
    assert len(topic) <= 100
    assert set(topic.split()) == {"word"}


def test_a_chinese_requirement_ends_where_its_sentence_does(tmp_path: Path) -> None:
    assert scenario(tmp_path, {"simulation_requirement": "旧桥关闭。谁会相信市长？"}).topic == "旧桥关闭"


def test_without_a_requirement_the_first_hot_topic_is_the_topic(tmp_path: Path) -> None:
    changes = {"simulation_requirement": "", "event_config.hot_topics": ["ferries", "fares"]}
    assert scenario(tmp_path, changes).topic == "ferries"


def test_generated_at_is_the_day_and_midnight_the_hour(tmp_path: Path) -> None:
    assert scenario(tmp_path, {"generated_at": "2025-12-24T18:00:00"}).time.start.isoformat() == "2025-12-24T00:00:00"


# time


def test_total_simulation_hours_is_the_number_of_rounds(tmp_path: Path) -> None:
    lines = run_lines(tmp_path, {"time_config.total_simulation_hours": 3})
    assert max(line["round"] for line in lines) == 3


def test_minutes_per_round_divide_the_hours(tmp_path: Path) -> None:
    lines = run_lines(tmp_path, {"time_config.total_simulation_hours": 3, "time_config.minutes_per_round": 30})
    assert max(line["round"] for line in lines) == 6
    assert {line["timestamp"][11:16] for line in lines if line["round"] == 4} == {"01:30"}


def test_agents_per_hour_max_bounds_how_many_act(tmp_path: Path) -> None:
    platform = DrivenPlatform(tmp_path, {"time_config.agents_per_hour_max": 2})
    assert [len(platform.list_acting(hour)) for hour in range(5)] == [2] * 5


def test_agents_per_hour_min_makes_more_act(tmp_path: Path) -> None:
    quiet: Changes = {"agent_configs.*.activity_level": 0.001}
    assert sum(len(DrivenPlatform(tmp_path / "none", quiet).list_acting(hour)) for hour in range(12)) < 6
    platform = DrivenPlatform(tmp_path / "some", {**quiet, "time_config.agents_per_hour_min": 3})
    assert [len(platform.list_acting(hour)) for hour in range(5)] == [3] * 5


def test_the_meaning_of_agents_per_hour_is_noted_where_it_differs(tmp_path: Path) -> None:
    def noted(minutes: int) -> bool:
        notes = import_directory(tmp_path, {"time_config.minutes_per_round": minutes}).notes
        return any("agents_per_hour" in note for note in notes)

    assert noted(30)
    assert not noted(60)


BANDS = {"peak": (19, 23), "off_peak": (0, 6), "morning": (6, 9), "work": (9, 19)}


@pytest.mark.parametrize("band", BANDS)
def test_a_bands_multiplier_scales_who_acts_in_its_hours(tmp_path: Path, band: str) -> None:
    platform = DrivenPlatform(tmp_path, {f"time_config.{band}_activity_multiplier": 0})
    silent = [hour for hour in range(24) if not platform.list_acting(hour)]
    assert silent == list(range(*BANDS[band]))


@pytest.mark.parametrize("band", BANDS)
def test_a_bands_hours_say_when_its_multiplier_counts(tmp_path: Path, band: str) -> None:
    others: Changes = {f"time_config.{other}_hours": [] for other in BANDS}
    platform = DrivenPlatform(
        tmp_path, {**others, f"time_config.{band}_hours": [3, 15], f"time_config.{band}_activity_multiplier": 0}
    )
    assert [hour for hour in range(24) if not platform.list_acting(hour)] == [3, 15]


# people


def test_agent_id_is_the_number_that_profiles_are_joined_by(tmp_path: Path) -> None:
    swapped = {"agent_configs.0.agent_id": 1, "agent_configs.1.agent_id": 0}
    found = scenario(tmp_path, swapped).population
    joined = [(entry.name, entry.username) for entry in found if isinstance(entry, PersonEntry)]
    assert joined[:2] == [("City Paper", "user_0"), ("Mayor Berg", "user_1")]


def test_ids_that_number_nothing_are_noted_and_the_order_counts(tmp_path: Path) -> None:
    changes = {f"agent_configs.{number}.agent_id": 100 + number for number in NUMBERS}
    changes["event_config.initial_posts.0.poster_agent_id"] = 102
    found = import_directory(tmp_path, changes)
    assert any("agent_ids" in note for note in found.notes)
    assert found.scenario["population"][3]["name"] == "Ben Roy"
    assert found.scenario["events"][0]["by"] == 2


def test_entity_name_is_the_name_in_the_history(tmp_path: Path) -> None:
    lines = run_lines(tmp_path, {"agent_configs.0.entity_name": "Mayor Olsen"})
    assert lines[0]["agent_name"] == "Mayor Olsen"


def test_a_repeated_name_gets_a_number(tmp_path: Path) -> None:
    found = import_directory(tmp_path, {"agent_configs.*.entity_name": "Ada"})
    assert [entry["name"] for entry in found.scenario["population"]] == ["Ada", "Ada 2", "Ada 3", "Ada 4"]
    assert any("'Ada 2'" in note for note in found.notes)


def test_entity_type_and_uuid_are_traits(tmp_path: Path) -> None:
    traits = person(tmp_path, 1, {"agent_configs.1.entity_type": "Newspaper"}).traits
    assert (traits["entity_type"], traits["entity_uuid"]) == ("Newspaper", "uuid-1")


def test_activity_level_is_the_chance_to_act(tmp_path: Path) -> None:
    platform = DrivenPlatform(tmp_path, {"agent_configs.1.activity_level": 0})
    assert all(platform.list_acting(hour) == [0, 2, 3] for hour in range(12))


def test_active_hours_are_when_an_agent_acts(tmp_path: Path) -> None:
    platform = DrivenPlatform(tmp_path, {"agent_configs.2.active_hours": [4, 5]})
    assert [hour for hour in range(24) if 2 in platform.list_acting(hour)] == [4, 5]


def test_an_agent_without_active_hours_never_acts(tmp_path: Path) -> None:
    platform = DrivenPlatform(tmp_path, {"agent_configs.2.active_hours": []})
    assert all(platform.list_acting(hour) == [0, 1, 3] for hour in range(24))


def test_a_reserved_word_is_not_used_as_a_name(tmp_path: Path) -> None:
    assert person(tmp_path, 0, {"agent_configs.0.entity_name": "random"}).name == "random 2"


@pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (0.5, 12, 36), (2, 96, 96)])
def test_posts_per_hour_is_how_much_an_agent_posts(tmp_path: Path, rate: float, least: int, most: int) -> None:
    changes = {"agent_configs.2.posts_per_hour": rate, "time_config.total_simulation_hours": 48}
    assert least <= counts(run_lines(tmp_path, changes), 2)["CREATE_POST"] <= most


def test_rates_count_per_hour_and_not_per_round(tmp_path: Path) -> None:
    changes = {
        "agent_configs.2.posts_per_hour": 1,
        "time_config.total_simulation_hours": 48,
        "time_config.minutes_per_round": 120,
    }
    assert counts(run_lines(tmp_path, changes), 2)["CREATE_POST"] == 48


@pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (0.5, 10, 36), (2, 80, 96)])
def test_comments_per_hour_is_how_much_an_agent_comments(tmp_path: Path, rate: float, least: int, most: int) -> None:
    changes = {
        "agent_configs.2.comments_per_hour": rate,
        "agent_configs.3.posts_per_hour": 1,
        "time_config.total_simulation_hours": 48,
    }
    assert least <= counts(run_lines(tmp_path, changes), 2)["CREATE_COMMENT"] <= most


def test_response_delay_max_hides_posts_for_a_while(tmp_path: Path) -> None:
    def ages(delay: int) -> set[int]:
        """How old in rounds posts are when the last agent comes across them."""
        changes = {"agent_configs.3.response_delay_max": delay, "agent_configs.3.response_delay_min": 0}
        platform = DrivenPlatform(tmp_path / str(delay), changes)
        found = set()
        for _ in range(12):
            post = platform.post(0)
            found.add(next(age for age in range(1, 20) if post in platform.list_shown(3, age)))
            platform.round += 30
        return found

    assert ages(60) == {1}
    assert {1, 5} <= ages(300) <= {1, 2, 3, 4, 5}


def test_response_delay_min_is_how_long_it_takes_at_least(tmp_path: Path) -> None:
    delay = {"agent_configs.3.response_delay_min": 180, "agent_configs.3.response_delay_max": 180}
    platform = DrivenPlatform(tmp_path, delay)
    post = platform.post(0)
    assert [post in platform.list_shown(3, later) for later in (1, 2, 3)] == [False, False, True]
    assert post in platform.list_shown(2)


def test_a_delay_holds_in_a_run(tmp_path: Path) -> None:
    """Nobody reacts to the first post before they have come across it."""

    def first_reaction(delay: int) -> int:
        changes = {"agent_configs.*.response_delay_min": delay, "agent_configs.*.response_delay_max": delay}
        quiet = {"agent_configs.*.posts_per_hour": 0}
        lines = run_lines(tmp_path / str(delay), {**changes, **quiet})
        return min(int(line["round"]) for line in lines if "post_id" in line["action_args"] and line["round"] > 0)

    assert first_reaction(0) == 1
    assert first_reaction(300) == 5


def test_sentiment_bias_colours_what_an_agent_writes(tmp_path: Path) -> None:
    def slant(bias: float) -> float:
        changes = {"agent_configs.2.sentiment_bias": bias, "time_config.total_simulation_hours": 48}
        return mean_slant(texts(run_lines(tmp_path / str(bias), changes), 2))

    assert slant(-0.8) < slant(0) - 0.1
    assert slant(0.8) > slant(0) + 0.05


@pytest.mark.parametrize(("word", "number"), [("supportive", 0.7), ("opposing", -0.7), ("neutral", 0), ("observer", 0)])
def test_a_stance_word_is_an_opinion(tmp_path: Path, word: str, number: float) -> None:
    assert person(tmp_path, 2, {"agent_configs.2.stance": word}).stance == number


def test_stance_shows_in_what_an_agent_writes(tmp_path: Path) -> None:
    def slant(stance: str) -> float:
        changes = {"agent_configs.2.stance": stance, "time_config.total_simulation_hours": 48}
        return mean_lean(run_lines(tmp_path / stance, changes), 2)

    assert slant("opposing") < slant("neutral") - 0.03
    assert slant("supportive") > slant("neutral") + 0.03


def test_an_observer_rarely_writes(tmp_path: Path) -> None:
    changes = {"agent_configs.2.stance": "observer", "time_config.total_simulation_hours": 48}
    lines = run_lines(tmp_path, changes)
    assert len(texts(lines, 2)) < len(texts(lines, 3)) / 3


def test_influence_weight_raises_the_posts_of_an_agent(tmp_path: Path) -> None:
    def first(weight: float) -> int:
        platform = DrivenPlatform(tmp_path / str(weight), {"agent_configs.0.influence_weight": weight})
        mine, other = platform.post(0), platform.post(1)
        assert set(platform.list_shown(3)) == {mine, other}
        return [mine, other].index(platform.list_shown(3)[0])

    assert first(1) == 1
    assert first(3) == 0


def test_influence_weight_makes_words_persuade_more(tmp_path: Path) -> None:
    def opinion(weight: float) -> float:
        changes = {"agent_configs.0.influence_weight": weight, "agent_configs.3.stance": "neutral"}
        platform = DrivenPlatform(tmp_path / str(weight), changes)
        platform.post(0, "I welcome the closing of the old bridge.")
        platform.mind.absorb(platform.look(3), Decision())
        return platform.mind.opinions()[3]

    assert 0 < opinion(0.5) < opinion(1) < opinion(3)


# profiles


def test_profiles_fill_the_fields_of_people(tmp_path: Path) -> None:
    found = person(tmp_path, 1)
    assert (found.username, found.bio, found.age, found.gender) == ("user_1", "Bio of City Paper.", 31, "other")
    assert (found.persona, found.country, found.profession) == (
        "City Paper has lived here for years.",
        "Norway",
        "mediaoutlet",
    )
    assert found.traits["mbti"] == "ISTJ"
    assert found.traits["karma"] == 1001


def test_own_interests_come_before_hot_topics(tmp_path: Path) -> None:
    assert person(tmp_path, 0).interests == ("music", "chess", "commuting")


def test_without_reddit_profiles_those_for_twitter_are_taken(tmp_path: Path) -> None:
    write_directory(tmp_path)
    (tmp_path / "reddit_profiles.json").unlink()
    found = load(tmp_path).population[1]
    assert isinstance(found, PersonEntry)
    assert (found.username, found.bio) == ("tweeter_1", "Short bio of City Paper.")
    assert found.persona == "Short bio of City Paper. City Paper tweets."


def test_profiles_without_a_configuration_of_their_own_take_part_too(tmp_path: Path) -> None:
    found = import_directory(tmp_path, {"agent_configs.3": MISSING})
    assert found.scenario["population"][3]["name"] == "Ben Roy"
    assert any("3 agent_configs, but 4 and 4 profiles" in note for note in found.notes)


def test_a_user_id_that_is_not_the_place_is_noted(tmp_path: Path) -> None:
    found = import_mirofish(write_directory(tmp_path, reddit={"2.user_id": 77}))
    assert any("user_id" in note and "77" in note for note in found.notes)


def test_an_unknown_gender_is_noted(tmp_path: Path) -> None:
    found = import_mirofish(write_directory(tmp_path, reddit={"2.gender": "robot"}))
    assert found.scenario["population"][2]["gender"] == "other"
    assert any("'robot'" in note for note in found.notes)


# events


def test_initial_posts_come_first_and_once(tmp_path: Path) -> None:
    lines = run_lines(tmp_path)
    first = [line for line in lines if line["round"] == 0]
    assert [(line["agent_id"], line["action_args"]["content"]) for line in first] == [(0, FIRST_POST)]


def test_poster_agent_id_is_who_posts(tmp_path: Path) -> None:
    assert run_lines(tmp_path, {"event_config.initial_posts.0.poster_agent_id": 2})[0]["agent_name"] == "Ada Lund"


def test_poster_type_is_the_first_agent_of_that_type(tmp_path: Path) -> None:
    changes = {
        "event_config.initial_posts.0.poster_agent_id": None,
        "event_config.initial_posts.0.poster_type": "student",
    }
    assert run_lines(tmp_path, changes)[0]["agent_name"] == "Ada Lund"


def test_a_post_without_an_author_is_by_the_most_influential(tmp_path: Path) -> None:
    changes = {"event_config.initial_posts": [{"content": "Hm."}], "agent_configs.3.influence_weight": 2}
    assert run_lines(tmp_path, changes)[0]["agent_name"] == "Ben Roy"


@pytest.mark.parametrize(
    ("when", "round"),
    [
        ({"round": 4}, 4),
        ({"hour": 3}, 4),
        ({"hours": 3.5}, 4),
        ({"time": "03:00"}, 4),
        ({"time": "2026-02-20T03:30:00"}, 4),
    ],
)
def test_a_scheduled_event_happens_in_its_round(tmp_path: Path, when: dict[str, Any], round: int) -> None:
    event = {"content": "The ferry runs.", "agent_id": 1, **when}
    lines = run_lines(tmp_path, {"event_config.scheduled_events": [event]})
    [line] = [line for line in lines if line.get("action_args", {}).get("content") == "The ferry runs."]
    assert (line["round"], line["agent_id"], line["action_type"]) == (round, 1, "CREATE_POST")


def test_a_scheduled_event_without_an_author_is_a_broadcast(tmp_path: Path) -> None:
    event = {"content": "The ferry runs.", "round": 4}
    lines = run_lines(tmp_path, {"event_config.scheduled_events": [event]})
    [line] = [line for line in lines if line.get("content") == "The ferry runs."]
    assert (line["event_type"], line["round"]) == ("broadcast", 4)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("post", PostEvent), ("announcement", BroadcastEvent), ("news", BroadcastEvent)],
)
def test_a_scheduled_event_may_say_what_it_is(tmp_path: Path, kind: str, expected: type) -> None:
    event = {"content": "The ferry runs.", "round": 4, "type": kind, "poster_agent_id": 1}
    assert isinstance(scenario(tmp_path, {"event_config.scheduled_events": [event]}).events[1], expected)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"content": "x"}, "does not say when"),
        ({"round": 2}, "no `content`"),
        ({"round": 2, "content": "x", "type": "earthquake"}, "'earthquake'"),
        ({"round": 99, "content": "x"}, "never comes"),
        ({"time": "soon", "content": "x"}, "cannot be told"),
    ],
)
def test_a_scheduled_event_that_is_not_understood_is_reported(
    tmp_path: Path, event: dict[str, Any], reason: str
) -> None:
    found = import_directory(tmp_path, {"event_config.scheduled_events": [event]})
    assert len(found.scenario["events"]) == 1
    assert any(reason in note for note in found.notes)
    assert any(use.use == "unused" and reason in use.becomes for use in found.fields)


def test_hot_topics_are_what_people_care_about(tmp_path: Path) -> None:
    def first(hot_topic: str) -> str:
        platform = DrivenPlatform(tmp_path / hot_topic, {"event_config.hot_topics": [hot_topic]})
        posts = {platform.post(0, "The ferries are full."): "ferries", platform.post(1, "The trams are full."): "trams"}
        return posts[platform.list_shown(3)[0]]

    assert first("ferries") == "ferries"
    assert first("trams") == "trams"


def test_narrative_direction_is_the_first_broadcast(tmp_path: Path) -> None:
    direction = "From anger to practical questions about the closing of the old bridge."
    lines = run_lines(tmp_path, {"event_config.narrative_direction": direction})
    [line] = [line for line in lines if line.get("content") == direction]
    assert (line["event_type"], line["round"]) == ("broadcast", 1)


def test_narrative_direction_makes_people_talk(tmp_path: Path) -> None:
    def on_topic(direction: str) -> int:
        changes = {"event_config.narrative_direction": direction, "agent_configs.*.posts_per_hour": 1}
        lines = run_lines(tmp_path / str(len(direction)), changes)
        posts = [line for line in lines if line["round"] == 1 and line.get("action_type") == "CREATE_POST"]
        return sum("bridge" in line["action_args"]["content"] for line in posts)

    assert on_topic("From anger to questions about the closing of the old bridge.") > on_topic("")


# platforms


def ranked(folder: Path, name: str, field: str, value: float, moves: str) -> bool:
    """Whether the first of two posts is shown above the second, with nothing but this and `moves` counting."""
    weights = {"recency_weight": 0, "popularity_weight": 0, "relevance_weight": 0, "echo_chamber_strength": 0}
    changes: dict[str, Any] = {f"{name}_config.{weight}": nothing for weight, nothing in weights.items()}
    changes |= {f"{name}_config.viral_threshold": 1000, f"{name}_config.{moves}": 0.5, f"{name}_config.{field}": value}
    platform = DrivenPlatform(
        folder / f"{name}-{field}-{value}", {**changes, "event_config.hot_topics": ["ferries"]}, name
    )
    first = platform.post(0, FOR if field == "echo_chamber_strength" else "The ferries are full.")
    if moves == "popularity_weight":
        platform.do(2, "REPOST" if field == "viral_threshold" else "LIKE_POST", post_id=first)
        platform.round += 6
    second = platform.post(1, AGAINST if field == "echo_chamber_strength" else "Good morning.")
    if field == "viral_threshold":
        for agent in (0, 1, 2):
            platform.do(agent, "LIKE_POST", post_id=second)
    platform.post(3, FOR)
    shown = [post for post in platform.list_shown(3) if post in (first, second)]
    assert len(shown) == 2
    return shown[0] == first


@pytest.mark.parametrize("name", ["twitter", "reddit"])
@pytest.mark.parametrize(
    ("field", "low", "high", "moves", "first_if_low"),
    [
        pytest.param("recency_weight", 0, 1, "popularity_weight", True, id="recency_weight"),
        pytest.param("popularity_weight", 0, 1, "popularity_weight", False, id="popularity_weight"),
        pytest.param("relevance_weight", 0, 1, "recency_weight", False, id="relevance_weight"),
        pytest.param("echo_chamber_strength", 0, 1, "recency_weight", False, id="echo_chamber_strength"),
        pytest.param("viral_threshold", 1, 1000, "popularity_weight", True, id="viral_threshold"),
    ],
)
def test_a_platforms_weights_say_what_people_are_shown_first(
    tmp_path: Path, name: str, field: str, low: float, high: float, moves: str, first_if_low: bool
) -> None:
    assert ranked(tmp_path, name, field, low, moves) is first_if_low
    assert ranked(tmp_path, name, field, high, moves) is not first_if_low


@pytest.mark.parametrize(("missing", "left"), [("twitter_config", ["reddit"]), ("reddit_config", ["twitter"])])
def test_a_platform_that_is_not_configured_is_not_there(tmp_path: Path, missing: str, left: list[str]) -> None:
    assert list(scenario(tmp_path, {missing: None}).worlds) == left


def test_where_no_platform_is_configured_the_profiles_decide(tmp_path: Path) -> None:
    write_directory(tmp_path, {"twitter_config": None, "reddit_config": None})
    (tmp_path / "twitter_profiles.csv").unlink()
    assert list(load(tmp_path).worlds) == ["reddit"]


# what is wrong


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"time_config.minutes_per_round": 0}, "time_config.minutes_per_round: must be at least 1, found 0"),
        ({"time_config.minutes_per_round": "an hour"}, "time_config.minutes_per_round: expected a whole number"),
        ({"time_config.total_simulation_hours": -1}, "time_config.total_simulation_hours: must be at least 0"),
        ({"time_config.total_simulation_hours": 0.5}, "less than one round of 60 minutes"),
        ({"time_config.agents_per_hour_min": 200}, "time_config.agents_per_hour_min: the minimum (200) is above"),
        ({"time_config.peak_hours": [25]}, "time_config.peak_hours: expected a list of hours from 0 to 23"),
        ({"time_config": 7}, "time_config: expected an object, found 7"),
        ({"agent_configs": {"a": 1}}, "agent_configs: expected a list of objects, found a mapping"),
        ({"agent_configs.1": "Ada"}, "agent_configs[1]: expected an object, found 'Ada'"),
        ({"agent_configs.1.activity_level": 2}, "agent_configs[1].activity_level: must be at most 1, found 2"),
        ({"agent_configs.1.agent_id": 0}, "agent_configs: agent_id 0 is there 2 times"),
        ({"event_config.initial_posts.0.content": ""}, "event_config.initial_posts[0].content: a post must say"),
        ({"event_config.initial_posts.0.poster_agent_id": 9}, "poster_agent_id: there is no agent 9"),
    ],
)
def test_nonsense_is_answered_with_file_and_field(tmp_path: Path, changes: Changes, problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        load(write_directory(tmp_path, changes))
    assert any(f"simulation_config.json: {problem}" in text or problem in text for text in caught.value.problems)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"agent_configs.1.stance": "suportive"}, "agent_configs[1].stance: expected supportive, opposing"),
        ({"agent_configs.1.stance": "suportive"}, "did you mean 'supportive'?"),
        ({"agent_configs.1.sentiment_bias": "sad"}, "agent_configs[1].sentiment_bias: expected a number"),
        ({"agent_configs.1.influence_weight": -1}, "agent_configs[1].influence_weight: must be at least 0"),
        ({"agent_configs.1.posts_per_hour": True}, "agent_configs[1].posts_per_hour: expected a number, found true"),
        ({"agent_configs.1.response_delay_min": 90}, "agent_configs[1].response_delay_min: 90 is above"),
        ({"event_config.hot_topics": "ferries"}, "event_config.hot_topics: expected a list of texts"),
        ({"twitter_config.recency_weight": 40}, "twitter_config.recency_weight: must be at most 1, found 40"),
        ({"reddit_config.platform": "usenet"}, "reddit_config.platform: expected reddit, found 'usenet'"),
        ({"generated_at": "yesterday"}, "generated_at: expected a date and time"),
    ],
)
def test_nonsense_that_mirofish_ignores_is_noted(tmp_path: Path, changes: Changes, problem: str) -> None:
    found = import_directory(tmp_path, changes)
    assert any(problem in note for note in found.notes)
    assert load(tmp_path).rounds > 0


def test_profiles_that_mirofish_is_still_writing_are_joined_by_user_id(tmp_path: Path) -> None:
    write_directory(tmp_path)
    (tmp_path / "reddit_profiles.json").unlink()
    (tmp_path / "twitter_profiles.csv").write_text(
        "user_id,username,name,bio,persona,friend_count,follower_count,age,gender,interested_topics\n"
        "1,paper,City Paper,Prints.,Prints daily.,10,20,31,other,\"['news', 'ink']\"\n"
        "3,ben,Ben Roy,Fishes.,Fishes daily.,11,21,40,male,\n"
    )
    found = import_mirofish(tmp_path)
    mayor, paper, _, ben = (load(tmp_path).population[number] for number in range(4))
    assert isinstance(mayor, PersonEntry)
    assert isinstance(paper, PersonEntry)
    assert isinstance(ben, PersonEntry)
    assert (mayor.name, mayor.persona) == ("Mayor Berg", None)
    assert (paper.username, paper.bio, paper.persona, paper.age) == ("paper", "Prints.", "Prints daily.", 31)
    assert (paper.interests or ())[:2] == ("news", "ink")
    assert (ben.name, ben.persona, ben.gender, ben.traits["friend_count"]) == ("Ben Roy", "Fishes daily.", "male", "11")
    assert any("still preparing profiles" in note for note in found.notes)


def test_a_folder_of_simulations_is_recognised(tmp_path: Path) -> None:
    for name in ("sim_a", "sim_b"):
        write_directory(tmp_path / name)
    with pytest.raises(ScenarioInvalid, match=r"2 simulations of MiroFish \(sim_a, sim_b\); .*`shoal run .*sim_a`"):
        load(tmp_path)
    with pytest.raises(ScenarioInvalid, match=r"`shoal import .*sim_a`"):
        import_path(tmp_path)


def test_chinese_texts_are_noted_because_the_offline_mind_cannot_read_them(tmp_path: Path) -> None:
    chinese = write_directory(
        tmp_path / "a", {"simulation_requirement": "旧桥关闭。"}, {"*.persona": "她住在这里很多年了，喜欢下棋。"}
    )
    assert any("offline mind reads and writes English only" in note for note in import_mirofish(chinese).notes)
    assert not any("English" in note for note in import_directory(tmp_path / "b").notes)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    changes = {"time_config.minutes_per_round": 0, "agent_configs.*.activity_level": 7}
    with pytest.raises(ScenarioInvalid) as caught:
        import_mirofish(write_directory(tmp_path, changes))
    assert len(caught.value.problems) == 1 + len(PEOPLE)


def test_wrong_profiles_are_answered_with_their_place(tmp_path: Path) -> None:
    write_directory(tmp_path, reddit={"2.age": "old"})
    with pytest.raises(ScenarioInvalid, match=r"reddit_profiles.json: \[2\].age: expected a whole number"):
        import_mirofish(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    write_directory(tmp_path)
    (tmp_path / "simulation_config.json").write_text(text)
    assert is_mirofish(tmp_path)
    with pytest.raises(ScenarioInvalid, match=r"simulation_config\.json"):
        load(tmp_path)


def test_a_directory_without_people_is_refused(tmp_path: Path) -> None:
    (tmp_path / "simulation_config.json").write_text("{}")
    with pytest.raises(ScenarioInvalid, match="nobody takes part"):
        load(tmp_path)


# other directories


def test_a_run_of_shoals_own_is_to_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "simulation_config.json").write_text('{"format": 1, "shoal_version": "0.1", "agent_configs": []}')
    assert not is_mirofish(tmp_path)
    with pytest.raises(ScenarioInvalid, match="shoal resume"):
        load(tmp_path)


def test_any_other_directory_is_no_scenario(tmp_path: Path) -> None:
    assert not is_mirofish(tmp_path)
    with pytest.raises(ScenarioInvalid, match="a directory; a scenario is a YAML or JSON file"):
        load(tmp_path)


def test_progress_files_of_mirofish_are_not_read(tmp_path: Path) -> None:
    write_directory(tmp_path)
    (tmp_path / "state.json").write_text("{")
    [use] = [use for use in import_mirofish(tmp_path).fields if use.source == "state.json"]
    assert use.use == "unused"


def test_time_begins_at_midnight_utc_when_the_day_is_not_known(tmp_path: Path) -> None:
    start = scenario(tmp_path, {"generated_at": MISSING}).time.start
    assert start.replace(tzinfo=UTC) == datetime(2026, 1, 1, tzinfo=UTC)
