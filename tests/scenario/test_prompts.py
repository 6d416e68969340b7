"""What a scenario tells language models: everything that is said about a person, templates, and what a limit cuts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import parse, validate
from shoal.scenario.prompts import describe_shortened_personas
from shoal.types import Observation
from tests.agents.language.minds import Replies, build_mind, no_insights

#: Has the shape of a TinyTroupe specification, and is longer than anything that was ever cut.
SPEC: dict[str, Any] = {
    "type": "TinyPerson",
    "persona": {
        "name": "Ines Roth",
        "age": 47,
        "gender": "Female",
        "nationality": "Austrian",
        "residence": "Graz",
        "education": "Apprenticeship as a bookbinder; evening school for restoration. " * 9,
        "long_term_goals": ["To open a workshop of her own.", "To see the library of Admont restored."],
        "occupation": {"title": "Bookbinder", "organization": "State archive", "description": "She mends maps. " * 40},
        "style": "Dry and exact. Swears by paste.",
        "personality": {
            "traits": ["You finish what you begin.", "You distrust glue from tubes."],
            "big_five": {"openness": "High. Reads everything.", "neuroticism": "Low."},
        },
        "preferences": {
            "interests": ["Old maps", "Hiking"],
            "likes": ["The smell of linen", {"food": "Buchteln", "drink": ["coffee", "must"]}],
            "dislikes": ["Plastic covers"],
        },
        "skills": ["You sew by hand.", "You read Kurrent."],
        "beliefs": [
            f"Belief number {n}: what was bound by hand in {1700 + n} will outlive its owner." for n in range(40)
        ],
        "behaviors": {"general": ["Hums at work."], "routines": {"morning": ["Walks along the Mur.", "Buys rolls."]}},
        "health": "Bad knees.",
        "relationships": [{"name": "Karl", "description": "Her brother, who sells tiles."}],
        "other_facts": ["She once found a letter in a spine.", "Multi\nline facts\n\nare facts too."],
    },
}


def list_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from list_leaves(below)
    else:
        yield " ".join(str(value).split())


def write_prompt(population: Any, agent: int = 0, topic: str | None = None, **mind: Any) -> str:
    """Return both messages of a prompt."""
    scenario = {"population": population, "worlds": ["room"], "topic": topic}
    built, made = build_mind(Replies(), scenario, **no_insights(**mind))
    time = "2026-03-02T12:00:00+00:00"
    seen = Observation(world="room", round=1, agent=agent, name=made.people.names[agent], time=time)
    return "\n---\n".join(message.content for message in built.request(seen).messages)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "Ines.agent.json"
    path.write_text(json.dumps(SPEC))
    return path


def test_everything_that_a_specification_says_is_in_the_prompt(spec: Path) -> None:
    told = " ".join(write_prompt([{"file": str(spec)}]).split())
    assert [leaf for leaf in list_leaves(SPEC["persona"]) if leaf not in told] == []


def test_everything_that_is_written_by_hand_is_in_the_prompt() -> None:
    traits = {f"trait {n}": "so it is " * 99 + str(n) for n in range(30)}
    told = write_prompt(
        [{"name": "Ada", "persona": "word " * 3000 + "end", "bio": "bio " * 200 + "over", "traits": traits}]
    )
    assert "word end" in told
    assert "bio over" in told
    assert all(f"so it is {n}" in told for n in range(30))


def test_a_specification_is_not_told_twice(spec: Path) -> None:
    told = write_prompt([{"file": str(spec)}])
    for fact in ("Swears by paste", "Reads everything", "Bad knees"):
        assert told.count(fact) == 1


def test_nothing_is_invented_about_a_person_who_is_described() -> None:
    told = write_prompt([{"name": "Ada", "persona": "Ada builds boats."}], topic="the old bridge")
    about = told.partition("# Who you are")[2].partition("# Now")[0]
    assert about == "\nYou are Ada. Ada builds boats.\n\n"
    told = write_prompt([{"name": "Ada", "stance": 0, "interests": ["boats"]}], topic="the old bridge")
    assert "Ada cares about boats. Ada is undecided about the old bridge." in told


def test_interests_and_opinions_are_drawn_where_the_population_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,stance\nAda,\nBo,-0.9\n")
    file = {"file": str(tmp_path / "people.csv")}
    told = write_prompt([file], topic="the old bridge")
    assert "about" not in told.partition("You are Ada.")[2].partition("# Now")[0]
    drawn = write_prompt([{**file, "stance": 0.8, "interests_from": ["chess"]}], topic="the old bridge")
    assert "cares about the old bridge and chess. Ada is strongly in favour of the old bridge." in drawn
    assert "Bo is strongly against" in write_prompt([{**file, "stance": 0.8}], 1, "the old bridge")
    by_hand = write_prompt([{"name": "Ada", "interests_from": {"pick": 1, "from": "chess"}}])
    assert "Ada cares about chess." in by_hand


def test_templates_replace_prompts_whole_or_in_parts() -> None:
    people = [{"name": "Ada", "age": 40, "traits": {"boat": "Erna"}}]
    told = write_prompt(people, prompt={"style": "Speak like a sailor.", "ask": "Well, {name}?"})
    system, _, user = told.partition("\n---\n")
    assert "You are not an assistant here. Speak like a sailor.\n\nWords between" in system
    assert "People are often passive" not in system
    assert user.endswith("\n\nWell, Ada?")
    whole = {"system": "{rules}|{boat}|{topic}", "rules": "In {world}.", "user": '{name} {age} {{x}} {"a": 1}{sight}'}
    system, _, user = write_prompt(people, topic="tea", prompt=whole).partition("\n---\n")
    assert system == "In room.|Erna|tea"
    assert user.startswith('Ada 40 {x} {"a": 1}# Now')
    assert "You are not an assistant" not in write_prompt(people, prompt={"role": ""})


def test_groups_have_prompts_of_their_own() -> None:
    people = [{"group": "sailors", "count": 1}, {"group": "cooks", "count": 1}]
    own = {"sailors": {"model": "openai/sea", "temperature": 0.1, "prompt": {"style": "Swear."}}, "cooks": "openai/pan"}
    mind: dict[str, Any] = {"by_group": own, "prompt": {"ask": "Go on."}}
    sailor, cook = (write_prompt(people, agent, **mind) for agent in (0, 1))
    assert "here. Swear." in sailor
    assert "Swear." not in cook
    assert sailor.endswith("Go on.")
    assert cook.endswith("Go on.")


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("{style: 'Be {nam}.'}", "s.yaml:3:50: mind.prompt.style: unknown variable 'nam'; did you mean 'name'?"),
        ("{ask: '{boot}'}", "s.yaml:3:48: mind.prompt.ask: unknown variable 'boot'; did you mean 'boat'?"),
        ("{system: '{memory}'}", "unknown variable 'memory'; it changes with every turn, so it belongs into `user`"),
        ("{user: '{zzz}'}", "{{zzz}} writes the braces themselves"),
        ("{stile: x}", "unknown field 'stile'; did you mean 'style'?"),
        ("{style: 3}", "mind.prompt.style: expected text, found 3"),
    ],
)
def test_a_template_is_checked_before_the_run(prompt: str, problem: str) -> None:
    text = (
        f"population: [{{name: Ada, traits: {{boat: Erna}}}}]\n\nmind: {{kind: language, model: m, prompt: {prompt}}}"
    )
    with pytest.raises(ScenarioInvalid) as caught:
        parse(text, "s.yaml")
    assert problem in str(caught.value)


def test_only_a_limit_cuts_and_it_is_said_whom() -> None:
    people = [{"name": "Ada", "persona": "long " * 400}, {"name": "Bo", "persona": "Short."}]
    mind = {"kind": "language", "model": "m", "prompt": {"persona_tokens": 60}}
    scenario = validate({"population": people, "mind": mind})
    [line] = describe_shortened_personas(scenario)
    assert line.startswith("of Ada, 60 of 507 tokens are told to the model")
    assert len(write_prompt(people, prompt={"persona_tokens": 60}).partition("# Who you are")[2]) < 400
    assert describe_shortened_personas(validate({"population": people, "mind": {**mind, "prompt": {}}})) == []
    crowd = [{"name": f"Ada {n}", "persona": "long " * 400} for n in range(8)]
    assert describe_shortened_personas(validate({"population": crowd, "mind": mind}))[-1].startswith("of 3 more people")
