"""The registry of kinds of world: each kind has everything that the rest of the package asks of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shoal
from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.minds import build_heuristic_mind
from shoal.agents.settings import HeuristicSettings
from shoal.types import Action, Observation, Versioned
from shoal.worlds.kinds import KIND_NAMES, KINDS, PAST_VERBS, kind_named, kind_seen, renderer_for
from shoal.worlds.world_kind import NOTHING, WorldKind
from tests.worlds.context import make_context

PACKAGE = Path(shoal.__file__).parent
#: Rooms that are about one kind of world by nature: minds that play it, MiroFish's platforms, its part of a summary.
ABOUT_ONE_KIND = (
    "worlds/",
    "agents/heuristic/",
    "scenario/importers/mirofish/",
    "runs/mirofish.py",
    "runs/network/contacts.py",
    "runs/reports/summary.py",
    "runs/views/activity.py",
    "runs/views/feed.py",
    "cli/views/summary.py",
)


def test_names_are_unique_and_lead_to_their_kind() -> None:
    assert len(set(KIND_NAMES)) == len(KIND_NAMES)
    assert [kind_named(name) for name in KIND_NAMES] == [kind for kind in KINDS for _ in kind.names]
    assert kind_named("module:Class") is kind_named(None) is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.names[0])
def test_a_kind_builds_a_world_whose_observations_lead_back_to_it(kind: WorldKind) -> None:
    settings = kind.settings(kind=kind.names[-1])
    world = kind.build("place", Versioned(settings), make_context(4))
    world.begin(0)
    (seen, *_) = world.observe(1, [agent for group in world.turns(1) for agent in group])
    assert kind_seen(seen) is kind
    assert renderer_for(seen) is kind.renderer
    assert kind.renderer.render_prompt(seen, 1000, lambda round, rounds: "").startswith("# Now\nIt is ")
    assert kind.renderer.render_prompt(seen, 1000, lambda round, rounds: "", is_past=True).startswith("It was ")
    assert kind.renderer.read("/nothing", seen) == Action("DO_NOTHING")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.names[0])
def test_a_kind_tells_models_only_of_actions_that_it_knows(kind: WorldKind) -> None:
    rules = kind.rules(kind.settings(kind=kind.names[0]))
    assert {card.kind for card in rules.actions} <= {card.kind for card in kind.cards} <= set(kind.actions)
    assert PAST_VERBS[NOTHING.kind] == "only looked on"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.names[0])
def test_a_kind_has_a_heuristic_mind(kind: WorldKind) -> None:
    behaviour = Versioned(Behaviour(HeuristicSettings(), None, 60))
    assert build_heuristic_mind(kind, make_context(4), behaviour, "place") is not None


def test_an_observation_of_no_kind_has_the_renderer_of_own_worlds() -> None:
    seen = Observation(world="w", round=1, agent=0, name="Ada", time="2026-01-01T08:00:00+00:00")
    assert kind_seen(seen) is None
    assert renderer_for(seen).recall_sight(seen) == ""


def test_no_other_room_imports_one_kind_of_world() -> None:
    kinds = ("shoal.worlds.room", "shoal.worlds.dialogue", "shoal.worlds.social")
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text()
        if not name.startswith(ABOUT_ONE_KIND) and any(kind in text for kind in kinds):
            imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
            found += [f"{name}: {node.module}" for node in imports if (node.module or "").startswith(kinds)]
    assert found == []
