"""Questions to people and about them from a script: interviews, forms filled in from records, claims that are scored.

The models are played by a rehearsal server, whose answers have the right form and no meaning.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from shoal.errors import ArgumentInvalid, QueryFailed, RunRefused
from shoal.python.person import Person
from shoal.python.rehearsal import rehearse
from shoal.python.world import World
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings

T = TypeVar("T")

MODEL = "openai/gpt-4.1-mini"
LANGUAGE = {"kind": "language", "model": MODEL}


@pytest.fixture
def beside_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[], T]], T]:
    """Return a function that runs a script while a server answers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run_script(script: Callable[[], T]) -> T:
        async def main() -> T:
            async with start(RehearsalSettings()) as server:
                monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
                return await asyncio.to_thread(script)

        return asyncio.run(main())

    return run_script


Beside = Callable[[Callable[[], object]], object]


def meeting() -> World:
    people = [Person("Ada, the first", age=50, stance=0.5), Person("Ben", age=30, stance=-0.5), Person("Cem", age=41)]
    world = World("Meeting", people, topic="the bridge")
    world.run(2, quiet=True)
    return world


def test_people_of_a_world_are_asked_and_the_answers_are_a_table(beside_server: Beside) -> None:
    def script() -> None:
        world = meeting()
        digest = world.results.digest
        answers = world.ask("Will you go?", fields=["go:yes/no", "sure:integer 0-10"], model=MODEL)
        frame = answers.frame()
        assert list(frame.columns) == ["agent", "name", "iteration", "model", "go", "sure", "error"]
        assert set(frame["go"]) <= {"yes", "no"}
        assert answers["Ben"]["go"] == frame.set_index("name").loc["Ben", "go"]
        assert answers.spending.calls == len(answers) == 3
        assert "<th" in answers._repr_html_()
        assert world.results.digest == digest
        # By object, also where the name has a comma in it; by condition; and as of an earlier round.
        ada = world.people["Ada, the first"]
        assert [row.name for row in world.ask("Why?", [ada, "Cem"], model=MODEL).rows] == [ada.name, "Cem"]
        assert [row.name for row in world.ask("Why?", where="age < 40", round=1, model=MODEL).rows] == ["Ben"]

    beside_server(script)


def test_several_questions_are_asked_at_once(beside_server: Beside) -> None:
    def script() -> None:
        survey: list[str | dict[str, Any]] = [
            {"question": "Will you go?", "fields": {"go": "yes/no"}},
            "Whom do you trust?",
        ]
        answers = meeting().ask(survey, "Ben", model=MODEL)
        assert list(answers["Ben"]) == ["go", "answer_2"]

    beside_server(script)


def test_a_person_is_interviewed_in_its_world_and_alone(beside_server: Beside) -> None:
    def script() -> None:
        world = meeting()
        ben = world.people["Ben"]
        assert isinstance(ben.interview("What do you think?", model=MODEL), str)
        found = ben.interview("Will you go?", {"go": "yes/no"}, model=MODEL)
        assert isinstance(found, dict)
        assert found["go"] in ("yes", "no")
        assert ben.interview("What do you think?", model=MODEL, round=1)
        dea = Person("Dea", persona="A poet.")
        assert dea.interview("Who are you?", model=MODEL)
        assert not [event for event in dea.listen_and_act("Hello!", mind=None) if event.round == 1]

    beside_server(script)


def test_a_person_alone_may_have_a_language_model(beside_server: Beside) -> None:
    def script() -> None:
        dea = Person("Dea", persona="A poet.")
        assert dea.listen_and_act("Hello!", mind=LANGUAGE)
        assert isinstance(dea.interview("What did you hear?"), str)

    beside_server(script)


def test_fields_are_extracted_from_people_and_from_a_whole_world(beside_server: Beside) -> None:
    def script() -> None:
        world = meeting()
        each = world.extract(
            ["choice:yes/no", "reason"], "Would they use the bridge?", hints={"reason": "short"}, model=MODEL
        )
        assert list(each.frame()["name"]) == ["Ada, the first", "Ben", "Cem"]
        assert set(each.frame()["choice"]) <= {"yes", "no"}
        whole = world.extract({"mood": "good|bad", "ideas": "text"}, who=world, model=MODEL)
        assert [(row.agent, row.name) for row in whole.rows] == [(None, "room")]
        assert whole["room"]["mood"] in ("good", "bad")

    beside_server(script)


def test_several_claims_are_scored_on_several_targets(beside_server: Beside) -> None:
    def script() -> None:
        world = meeting()
        claims = ["They agree.", "They know one another."]
        frame = world.score(claims, ["Ben", "Cem"], world="room", model=MODEL).frame()
        assert list(zip(frame["claim"], frame["name"], strict=True)) == [
            (claim, name) for claim in claims for name in ("room", "Ben", "Cem")
        ]
        assert frame["score"].between(0, 9).all()
        assert len(world.score(claims[0], world, model=MODEL)) == 1
        assert len(world.score(claims[0], model=MODEL)) == 3

    beside_server(script)


def test_what_cannot_be_asked_is_refused_in_words() -> None:
    world = World("Meeting", [Person("Ada")])
    with pytest.raises(RunRefused, match="nothing has been run yet"):
        world.ask("Why?")
    world.run(quiet=True)
    with pytest.raises(QueryFailed, match="their mind is heuristic"):
        world.people["Ada"].interview("Why?")
    with pytest.raises(QueryFailed, match="fields go with one question"):
        world.ask(["Why?", "When?"], fields=["go:yes/no"], model=MODEL)
    with pytest.raises(QueryFailed, match="there is no field to fill in"):
        world.extract([], model=MODEL)
    with pytest.raises(QueryFailed, match="a hint for 'cost', which is not a field; there is choice"):
        world.extract("choice", hints={"cost": "in dollars"}, model=MODEL)
    with pytest.raises(QueryFailed, match="there is no agent 'Bem'"):
        world.ask("Why?", "Bem", model=MODEL)


def test_a_rehearsal_beside_a_script_sets_the_address_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with rehearse(seed=3) as server:
        assert os.environ["OPENAI_BASE_URL"] == server.base_url != "http://elsewhere"
        assert Person("Dea").interview("Who are you?", model=MODEL)
    assert (os.environ["OPENAI_BASE_URL"], os.environ.get("OPENAI_API_KEY")) == ("http://elsewhere", None)
    server.close()


def test_a_rehearsal_with_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ArgumentInvalid, match="a rehearsal has no setting 'latncy_seconds'; did you mean"):
        rehearse(latncy_seconds=1)
    with pytest.raises(ArgumentInvalid, match="cap"):
        rehearse(cap=0)
