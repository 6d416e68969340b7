"""The reference is complete and up to date: generated parts, examples, and every field and action by its name."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from bench.bars import ALL
from shoal.journal import JournalLine
from shoal.runs.directory import CONFIG, ENV_STATUS, JOURNAL, LOCK, LOG, METRICS, STATE
from shoal.runs.operations import create_run
from shoal.runs.worker import work_on_run
from shoal.scenario import document
from shoal.scenario.loading import validate
from shoal.types import Event, Notice
from shoal.worlds.social.actions.rules import NEEDS
from shoal.worlds.social.observations import SocialObservation
from tests import api_types
from tests.reference import DOCS, PARTS, replace_part

SCENARIO = validate({"population": {"count": 2}, "rounds": 1})
PAGES = "".join((DOCS / page).read_text() for page in ("scenario.md", "interventions.md"))
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGES, re.DOTALL | re.MULTILINE)


def find_unmentioned(page: str, names: Iterable[str]) -> list[str]:
    text = (DOCS / page).read_text()
    return [name for name in names if f"`{name}`" not in text]


def list_fields(*kinds: type[msgspec.Struct]) -> list[str]:
    return [name for kind in kinds for name in kind.__struct_encode_fields__]


@pytest.mark.parametrize("name", PARTS)
def test_a_generated_part_is_up_to_date(name: str) -> None:
    page, generate = PARTS[name]
    text = (DOCS / page).read_text()
    assert text == replace_part(text, name, generate()), "run scripts/reference"


def test_a_part_that_is_not_on_the_page_is_an_error() -> None:
    with pytest.raises(ValueError, match="found 0"):
        replace_part("# A page", "fields", "...")


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.partition("\n")[0])
def test_an_example_is_a_scenario_or_a_part_of_one(text: str) -> None:
    validate({"population": {"count": 20}, **document.read_document(text, "example").value})


def test_every_action_is_listed_with_its_arguments() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\|", (DOCS / "worlds.md").read_text(), re.MULTILINE)
    listed = {kind: tuple(re.findall(r"`(\w+)`", arguments)) for kind, arguments in rows}
    assert listed == {kind: tuple(needs) for kind, needs in NEEDS.items()}


def test_every_field_of_an_observation_is_documented() -> None:
    assert find_unmentioned("worlds.md", list_fields(SocialObservation)) == []


def test_every_file_of_a_run_is_documented() -> None:
    files = (CONFIG, STATE, JOURNAL, METRICS, LOG, LOCK, ENV_STATUS, "<world>_simulation.db", "<world>/actions.jsonl")
    assert find_unmentioned("run-directory.md", files) == []


def test_every_field_of_the_stream_and_the_journal_is_documented() -> None:
    assert find_unmentioned("run-directory.md", list_fields(Event, Notice, JournalLine)) == []


def test_every_field_of_the_stored_config_is_documented(tmp_path: Path) -> None:
    content = json.loads(create_run(SCENARIO, tmp_path / "a").file(CONFIG).read_text())
    assert find_unmentioned("run-directory.md", content) == []


async def test_every_field_of_state_status_and_metrics_is_documented(tmp_path: Path) -> None:
    await work_on_run(create_run(SCENARIO, tmp_path), asyncio.Event())
    state = json.loads((tmp_path / STATE).read_text())
    status = json.loads((tmp_path / ENV_STATUS).read_text())
    metric = json.loads((tmp_path / METRICS).read_text().partition("\n")[0])
    shared = {name for name in state if not name.startswith(("twitter_", "reddit_"))}
    assert find_unmentioned("run-directory.md", {*shared, *state["worlds"]["twitter"], *status, *metric}) == []


def test_every_bar_is_documented() -> None:
    assert find_unmentioned("benchmarks.md", (measurement.__name__ for measurement in ALL)) == []


def test_types_of_the_pages_are_those_of_the_http_api() -> None:
    messages = api_types.describe_messages()
    assert api_types.TYPES.read_text().startswith(api_types.first_line(messages)), "run scripts/reference"
