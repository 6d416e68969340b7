"""What came out of a run: as records, frames, text, and in a notebook."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ArgumentInvalid, BudgetReached, QueryFailed, RunMissing, ShoalError
from shoal.python.person import Person
from shoal.python.results import Figures, build_action_columns, build_frame, build_row_columns
from shoal.python.run import Run, run
from shoal.python.run import open as open_run
from shoal.python.world import World
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.types import Event


@pytest.fixture
def results() -> Run:
    people = [Person("Ada", stance=0.8, activity=1), Person("<b>Ben", stance=-0.8, activity=1)]
    world = World("Town", people, topic="the bridge").broadcast("Speak <up>!", to="Ada")
    return world.run(rounds=4)


def test_a_run_can_be_opened_again(results: Run) -> None:
    again = open_run(results.path)
    assert (again.digest, again.rounds, again.worlds) == (results.digest, 4, ("room",))
    assert list(again.actions()) == list(results.actions())
    assert again.summary().worlds[0].actions == len(list(again.actions()))
    assert repr(again) == f"<Run runs/town-1: completed, 4 rounds, {len(list(again.actions()))} actions>"


def test_there_is_nothing_to_open_where_there_is_no_run() -> None:
    with pytest.raises(RunMissing, match="there is no run in nowhere"):
        open_run("nowhere")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_actions_are_a_frame_with_their_arguments_as_columns(results: Run, kind: str) -> None:
    frame = results.frame(kind=kind)
    assert type(frame).__module__.partition(".")[0] == kind
    actions = list(results.actions())
    assert list(frame["agent_name"]) == [event.agent_name for event in actions]
    talk = next(place for place, event in enumerate(actions) if event.action_type == "TALK")
    assert list(frame["content"])[talk] == actions[talk].action_args["content"]
    assert set(frame["world"]) == {"room"}


def test_tables_of_the_database_are_frames_too(results: Run) -> None:
    assert results.to_polars().shape == results.to_pandas().shape
    assert results.frame("user")["name"].tolist() == ["Ada", "<b>Ben"]
    assert results.query("SELECT count(*) AS n FROM user", kind="polars")["n"].to_list() == [2]
    assert {"actions", "user", "trace", "utterance"} <= set(results.tables())


def test_what_is_not_there_is_refused_in_words(results: Run) -> None:
    with pytest.raises(QueryFailed, match="there is no table 'usr'; did you mean 'user'"):
        results.frame("usr")
    with pytest.raises(QueryFailed, match="no world 'rom' in this run; did you mean 'room'"):
        results.frame(world="rom")
    with pytest.raises(ShoalError, match="there are no 'panda' frames, only pandas or polars; did you mean 'pandas'"):
        results.frame(kind="panda")
    with pytest.raises(QueryFailed, match="the database does not understand this"):
        results.query("SELEKT")


def test_a_library_that_is_missing_is_named(results: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ShoalError, match="frames of this kind need polars: install it with `pip install polars`"):
        results.to_polars()


def test_a_run_with_several_worlds_says_which_is_which() -> None:
    results = run({"population": [{"count": 20}], "rounds": 2, "worlds": ["twitter", "reddit"]})
    assert set(results.frame()["world"]) == {"twitter", "reddit"}
    assert set(results.frame(world="reddit")["world"]) == {"reddit"}
    with pytest.raises(QueryFailed, match="several worlds; say which with world=: twitter or reddit"):
        results.frame("user")
    assert len(results.frame("user", world="twitter")) == 20
    assert "twitter" in results._repr_html_()


def test_columns_are_of_one_type_each() -> None:
    events = [
        _event(0, {"content": "hi", "score": 1, "tags": ["a"], "result": "x"}),
        _event(1, {"content": 3, "score": 0.5}),
    ]
    columns = build_action_columns(("room", event) for event in events)
    assert columns["content"] == ["hi", "3"]
    assert columns["score"] == [1, 0.5]
    assert columns["tags"] == ['["a"]', None]
    assert (columns["result"], columns["args.result"]) == ([None, None], ["x", None])
    assert build_frame(columns, "polars").shape == build_frame(columns, "pandas").shape


def test_nothing_is_a_frame_as_well() -> None:
    assert len(build_frame(build_action_columns([]), "pandas")) == 0
    assert build_frame(build_row_columns(["a"], []), "polars").columns == ["a"]
    assert build_row_columns(["a"], [(b"\x01",), (None,)]) == {"a": ["01", None]}


def _event(agent: int, args: dict[str, Any]) -> Event:
    return Event(1, agent, "Ada", "TALK", args, True, None, "2026-01-01T08:00:00+00:00", f"room-1-{agent}-0")


def test_a_transcript_tells_who_said_what(results: Run) -> None:
    told = results.transcript().splitlines()
    assert told[:2] == ["-- round 1, 2026-01-01 08:00", "[broadcast to Ada] Speak <up>!"]
    said = [event for event in results.actions() if event.action_type == "TALK"]
    assert f"{said[0].agent_name}: {said[0].action_args['content']}" in told
    assert results.transcript(last=2).splitlines() == told[-2:]


def test_the_transcript_of_one_person_leaves_out_the_others(results: Run) -> None:
    told = results.transcript(person="<b>Ben")
    assert "\nAda: " not in told
    assert "to Ada" not in told
    assert "\n<b>Ben: " in told
    assert results.transcript(person=Person("Ada")) == results.transcript(person="Ada")


def test_a_line_that_is_only_half_there_is_left_out(results: Run) -> None:
    whole = list(results.actions())
    with (results.path / "room" / "actions.jsonl").open("ab") as stream:
        stream.write(b'{"round":5,"agent_')
    assert list(results.actions()) == whole


def test_a_run_that_never_got_anywhere_has_no_actions(results: Run) -> None:
    (results.path / "room" / "actions.jsonl").unlink()
    assert list(results.actions()) == []


def test_a_notebook_shows_what_happened_without_trusting_it(results: Run) -> None:
    shown = results._repr_html_()
    assert "&lt;b&gt;Ben" in shown
    assert "Speak &lt;up&gt;!" in results.transcript()._repr_html_()
    assert "<b>" not in shown
    assert "most active" in shown
    assert results.digest in shown


def test_a_notebook_shows_a_world_before_and_after_its_first_run() -> None:
    world = World("<i>Town", [Person("Ada"), Person("Ben")])
    assert world._repr_html_() == "<p><strong>&lt;i&gt;Town: 2 people, 0 rounds</strong></p>"
    world.run(2)
    assert "most active" in world._repr_html_() or "do_nothing" in world._repr_html_()


def test_figures_are_read_by_name_and_shown_in_words(results: Run) -> None:
    figures = results.metrics
    assert figures.parallel_steps == figures["parallel_steps"] == 4
    assert isinstance(figures, Mapping)
    assert "parallel_steps      4\n" in repr(figures)
    assert "<td" in figures._repr_html_()
    assert "speedup" in dir(figures)
    with pytest.raises(AttributeError, match="there is no figure 'speedupp'; did you mean 'speedup'"):
        figures.speedupp  # noqa: B018
    assert "not measured" in repr(Figures.of(None))


def test_a_run_directory_of_the_command_line_opens(folder: Path) -> None:
    kept = run({"population": [{"count": 5}], "rounds": 2}, out=folder / "kept")
    assert open_run("kept").digest == kept.digest


def test_a_run_is_continued_replayed_and_forked(results: Run) -> None:
    opened = open_run(results.path)
    before = opened.digest
    assert opened.replay().digest == before
    assert opened.resume(quiet=True).digest == before
    assert opened.resume(6, quiet=True).rounds == 6
    fork = opened.fork(3, inject=[{"hear": "A bang."}], set={"mind.talkativeness": 2, "rounds": 6}, quiet=True)
    assert fork.path.name == "town-1-fork-1"
    assert fork.rounds == 6
    assert [event.round for event in fork.actions() if event.round < 3] == [
        event.round for event in opened.actions() if event.round < 3
    ]
    assert "A bang." in fork.transcript()
    assert "A bang." not in opened.transcript()


def test_a_fork_takes_its_events_from_a_file_too(results: Run, tmp_path: Path) -> None:
    (tmp_path / "bang.yaml").write_text('- {hear: "A bang."}')
    fork = results.fork(2, inject=tmp_path / "bang.yaml", out=tmp_path / "bang", quiet=True)
    assert fork.path == tmp_path / "bang"
    assert "A bang." in fork.transcript()


def test_what_a_run_cannot_do_is_refused_with_the_reason(results: Run) -> None:
    with pytest.raises(ShoalError, match="has 4 rounds already"):
        results.resume(2)
    with pytest.raises(ShoalError, match="9 is not a round of this run; it has rounds 0 to 4"):
        results.fork(9)
    with pytest.raises(ShoalError, match="their mind is heuristic"):
        results.ask("Do you trust the mayor?")


def test_limits_of_a_script_hold_for_the_command_too_until_others_are_given() -> None:
    small = {"rounds": 1, "population": [{"count": 3}]}
    found = run(small, out="limited", limits={"max_cost": 2, "parallel": 4}, quiet=True)
    assert found.summary().limits == {"max_cost": 2, "parallel": 4}
    found.resume(2, limits={"max_cost": 3.5}, quiet=True)
    assert open_run("limited").summary().limits == {"max_cost": 3.5, "parallel": 4}
    assert found.fork(1, out="branch", limits={"max_calls": 9}, quiet=True).summary().limits == {"max_calls": 9}
    with pytest.raises(ArgumentInvalid, match="there is no limit 'max_price', only max_cost, "):
        run(small, limits={"max_price": 2})
    with pytest.raises(ArgumentInvalid, match=r"expected a number above 0, found 1\.5"):
        found.resume(limits={"max_calls": 1.5})


async def test_a_budget_that_is_reached_says_so_and_a_larger_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    mind = {"kind": "language", "model": "openai/rehearsal"}
    async with start(RehearsalSettings()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        world = World("Town", [Person("Ada"), Person("Ben")], mind=mind, limits={"max_calls": 1}, out="town")
        with pytest.raises(BudgetReached, match="1 of max_calls 1"):
            await asyncio.to_thread(world.run, 2, quiet=True)
        whole = await asyncio.to_thread(open_run("town").resume, limits={"max_calls": 100}, quiet=True)
    assert (whole.status, whole.rounds) == ("completed", 2)


def test_a_turn_is_explained_from_python(results: Run) -> None:
    acting = next(event for event in results.actions() if event.round == 2)
    why = results.explain(acting.agent_name, 2)
    assert [turn.name for turn in why.explanations] == [acting.agent_name]


def test_a_run_knows_its_quality(results: Run) -> None:
    assert results.quality.verdict == "good"
    assert results.quality.reasons == ()
    assert results.summary().quality == results.quality


def test_a_run_is_measured(results: Run) -> None:
    found = results.measure("participation", "balance")
    assert found == {name: results.series(name)[-1][1] for name in ("participation", "balance")}
    assert set(found) < set(results.measure())
    with pytest.raises(QueryFailed, match="did you mean 'balance'"):
        results.measure("balanse")
