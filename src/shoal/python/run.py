"""Runs as a script uses them: run a scenario, open a run, read what happened, and go on from there."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from shoal.agents import OBJECTIVE, Extraction, Field, Item, Survey, parse_fields
from shoal.errors import QueryFailed
from shoal.experiments.metrics import choose_metrics, list_recorded, load_own_metrics, measure_run, read_series
from shoal.models.local import ModelStore, find_table
from shoal.python import results
from shoal.python.results import Answers, Figures, Transcript
from shoal.python.session import Session, find_resources, finish_run, wait_for
from shoal.runs import (
    LimitSettings,
    RunDirectory,
    RunOutcome,
    RunState,
    Status,
    extend_run,
    fork_run,
    plan_fork,
    plan_resume,
    read_outcome,
    replay,
)
from shoal.runs.interviews import (
    AgentSelection,
    AnswerTable,
    Asking,
    ask_agents,
    extract_from_agents,
    extract_from_world,
    join_tables,
    parse_survey,
    read_survey,
    score_agents,
    score_world,
)
from shoal.runs.plots import PlotPage, plot_runs
from shoal.runs.reports import Quality, Summary, assess_run, query_database, summarize
from shoal.runs.rerun import ExplainResult, archive_failed, explain_turn, plan_retry
from shoal.runs.sinks import answer_from_graph
from shoal.scenario import Scenario, load, validate
from shoal.sinks import GraphAnswer
from shoal.text import hint, one_of
from shoal.types import Event, Notice

ACTIONS = "actions"
#: Lines of the transcript that a notebook shows.
_LAST_LINES = 12
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
_NAMES = "SELECT user_id, name FROM user"
_KINDS = "SELECT action, count(*) FROM trace WHERE action != 'sign_up' GROUP BY 1 ORDER BY 2 DESC, 1"
_ACTIVE = """SELECT name, count(*) AS actions FROM trace JOIN user USING (user_id)
WHERE action NOT IN ('sign_up', 'do_nothing', 'refresh', 'done')
GROUP BY user_id ORDER BY actions DESC, user_id LIMIT 5"""


#: Fields of a form: `["go:yes/no", "why"]`, or `{"go": "yes/no", "why": "text"}`.
Fields: TypeAlias = str | Sequence[str] | Mapping[str, str]


class Run:
    """A run on disk: what happened in it, while it goes on and long after, and what can be done with it."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory

    # State

    @property
    def path(self) -> Path:
        """The run directory; `shoal show`, `shoal replay` and `shoal fork` work on it too."""
        return self._directory.path

    @property
    def state(self) -> RunState:
        """The content of run_state.json."""
        return self._directory.read_state()

    @property
    def status(self) -> Status:
        return self._directory.read_status()

    @property
    def digest(self) -> str:
        """The digest of the history: runs with the same digest have the same history."""
        return read_outcome(self._directory).digest

    @property
    def rounds(self) -> int:
        """The last round that was committed."""
        return self.state.current_round

    @property
    def worlds(self) -> tuple[str, ...]:
        return tuple(self._directory.worlds)

    @property
    def metrics(self) -> Figures:
        """Steps by mode, measured speedup, errors, timeouts and latencies of decisions."""
        return Figures.of(self.state)

    @property
    def quality(self) -> Quality:
        """Whether the run can be relied upon: `verdict` is `good`, `doubtful` or `bad`, `findings` say why."""
        return assess_run(self._directory, find_table(ModelStore.of_user(os.environ)))

    # What happened

    def actions(self, world: str | None = None) -> Iterator[Event]:
        """Iterate over all actions, also refused ones, world by world, in the order in which they were applied."""
        return (event for _, event in self._actions_by_world(world))

    def summary(self) -> Summary:
        """Return the figures that `shoal show` prints."""
        return summarize(self._directory, find_table(ModelStore.of_user(os.environ)))

    def transcript(self, person: object = None, *, world: str | None = None, last: int | None = None) -> Transcript:
        """Return what happened as text: all of it, of one person, or only the last lines."""
        name = None if person is None else str(getattr(person, "name", person))
        texts: deque[str] = deque(maxlen=last)
        for place in self._check_world(world):
            names = {int(str(agent)): str(known) for agent, known in query_database(self._directory, place, _NAMES)[1]}
            lines = (line for line in self._directory.open_stream(place).read() if isinstance(line, Event | Notice))
            texts.extend(results.render_lines(lines, names, name))
        return Transcript("\n".join(texts))

    def tables(self, world: str | None = None) -> list[str]:
        """List the tables that `frame` knows."""
        return [
            ACTIONS,
            *(str(name) for (name,) in query_database(self._directory, self._one_world(world), _TABLES)[1]),
        ]

    def frame(self, table: str = ACTIONS, *, world: str | None = None, kind: str = "pandas") -> Any:
        """Return a table as a pandas or polars frame: `actions` of all worlds, or a table of one world's database."""
        if table == ACTIONS:
            return results.build_frame(results.build_action_columns(self._actions_by_world(world)), kind)
        if table not in (known := self.tables(world)):
            raise QueryFailed(f"there is no table {table!r}{hint(table, known) or '; there is ' + one_of(known)}")
        return self.query(f'SELECT * FROM "{table}"', world=world, kind=kind)

    def query(self, sql: str, *, world: str | None = None, kind: str = "pandas") -> Any:
        """Ask a world's database in SQL, and return the answer as a frame."""
        return results.build_frame(
            results.build_row_columns(*query_database(self._directory, self._one_world(world), sql)), kind
        )

    def to_pandas(self, table: str = ACTIONS, *, world: str | None = None) -> Any:
        """Return all actions, or another table such as `opinion` or `figure`, as a pandas frame."""
        return self.frame(table, world=world, kind="pandas")

    def to_polars(self, table: str = ACTIONS, *, world: str | None = None) -> Any:
        """Return all actions, or another table such as `opinion` or `figure`, as a polars frame."""
        return self.frame(table, world=world, kind="polars")

    def plot(self, *others: Run | str | Path, out: str | Path | None = None) -> PlotPage:
        """Draw this run, and others in the same charts. A notebook shows the page; `out` is a folder to write it to."""
        runs = [run._directory if isinstance(run, Run) else RunDirectory.open(Path(run)) for run in (self, *others)]
        page = plot_runs(runs)
        if out is not None:
            page.save(Path(out))
        return page

    def measure(self, *names: str, files: Sequence[str | Path] = ()) -> dict[str, float]:
        """Return the values of metrics at the end: those named, or all that the run has a value for.

        `files` hold metrics of the user's own. A named metric without a value is left out.
        """
        own = [metric for file in files for metric in load_own_metrics(Path(file))]
        known = [*list_recorded(self._directory), *own]
        return measure_run(self._directory, choose_metrics(names, known) if names else known).values

    def series(self, name: str, *, files: Sequence[str | Path] = ()) -> list[tuple[int, float]]:
        """Return a metric, such as `reach(rumour)`, after each round that it has a value for."""
        own = [metric for file in files for metric in load_own_metrics(Path(file))]
        return read_series(self._directory, name, own)

    # What can be done with it

    def resume(
        self,
        rounds: int | None = None,
        *,
        retry_failed: bool = False,
        limits: Mapping[str, float] | None = None,
        quiet: bool = False,
    ) -> Run:
        """Continue a run that was stopped, killed or failed; with `rounds`, go on to that round.

        `limits` such as `{"max_cost": 5}` replace those that the run was given before, from now on; `patience` is how
        many seconds to wait for a server that does not answer. With `retry_failed`, turns that runs of older versions
        lost to an outage are asked for again, which changes the history from the first of them on.
        """
        given = LimitSettings.of(limits or {})
        if retry_failed and (lost := plan_retry(self._directory)) is not None:
            archive_failed(lost)
            self._directory = RunDirectory.open(self.path)
        plan = plan_resume(self._directory, rounds)
        if plan.extension is not None:
            extend_run(self._directory, plan.extension)
        if not plan.is_over:
            finish_run(self._directory, f"resuming {self.path}", quiet, given)
        return self

    def replay(self) -> RunOutcome:
        """Run it again from its journal and compare every round; `Diverged` names the first that differs."""
        return wait_for(lambda stop: replay(self._directory, stop))

    def fork(
        self,
        at: int,
        *,
        inject: str | Path | Sequence[Mapping[str, Any]] = (),
        set: Mapping[str, Any] | None = None,
        out: str | Path | None = None,
        limits: Mapping[str, float] | None = None,
        quiet: bool = False,
    ) -> Run:
        """Branch the run at a round and run the branch to its end.

        `inject`: events that happen in the branch, or a file that holds them. `set`: changed values of the scenario,
        such as `{"mind.persuasion": 0.3}`. `out`: the new run directory, by default NAME-fork-N beside this one.
        `limits`: those of the branch, such as `{"max_calls": 500}`.
        """
        changes = [f"{path}={msgspec.json.encode(value).decode()}" for path, value in (set or {}).items()]
        events = Path(inject) if isinstance(inject, str | Path) else inject
        plan = plan_fork(self._directory, at, changes=changes, events=events)
        given = LimitSettings.of(limits or {})
        child = fork_run(plan, None if out is None else Path(out), given)
        finish_run(child, f"forking {self.path} at round {at}", quiet, given)
        return Run(child)

    def explain(self, who: object, round: int, *, world: str | None = None) -> ExplainResult:
        """Rebuild what a person saw in a round, and what its decision rests on."""
        name = str(getattr(who, "name", who))
        return wait_for(lambda stop: explain_turn(self._directory, name, round, world))

    def ask(
        self, question: str | Path | Sequence[str | Mapping[str, Any]], *, fields: Fields = (), **options: Any
    ) -> Answers:
        """Interview copies of agents, as of a round; the run does not change. `frame()` of the answers is a table.

        `question`: a text, several of them with fields of their own, or the file of a survey. `fields` of the answer to
        one question: `["go:yes/no", "why"]`. The other options are those of `shoal ask`: `who`, `where="age > 40"`,
        `sample`, `round`, `iterations`, `model`.
        """
        if isinstance(question, str):
            survey = Survey.of([Item(question, _parse_fields(fields))])
        elif fields:
            raise QueryFailed("fields go with one question; several questions have their own")
        else:
            survey = read_survey(question) if isinstance(question, Path) else parse_survey(list(question))
        asking = _plan_asking(**options)
        return Answers(wait_for(lambda stop: ask_agents(self._directory, survey, asking, find_resources())))

    def ask_graph(self, question: str, limit: int = 8) -> GraphAnswer:
        """Ask the run's graph memory who thinks what, since when, and which episodes show it. No model is asked."""
        return answer_from_graph(self._directory, question, limit)

    def extract(
        self,
        fields: Fields,
        objective: str = OBJECTIVE,
        *,
        hints: Mapping[str, str] | None = None,
        world: str | Sequence[str] = (),
        **options: Any,
    ) -> Answers:
        """Let a model fill in a form from the record of each agent, or of whole worlds. No agent is asked.

        The options are those of `ask`.
        """
        extraction, asking = Extraction(_parse_fields(fields), objective, hints or {}), _plan_asking(**options)
        directory, worlds = self._directory, [world] if isinstance(world, str) else [*world]

        async def extract(stop: object) -> AnswerTable:
            if not worlds:
                return await extract_from_agents(directory, extraction, asking, find_resources())
            found = [await extract_from_world(directory, extraction, each, asking, find_resources()) for each in worlds]
            return join_tables(found)

        return Answers(wait_for(extract))

    def score(self, claims: str | Sequence[str], *, world: str | Sequence[str] = (), **options: Any) -> Answers:
        """Let a model score claims, 0 to 9 with reasons, by the record of each agent and of the named worlds.

        The options are those of `ask`. Where worlds are named and no people, only the worlds are judged.
        """
        stated, asking = [claims] if isinstance(claims, str) else [*claims], _plan_asking(**options)
        directory, worlds = self._directory, [world] if isinstance(world, str) else [*world]
        judges_agents = not worlds or asking.whom != AgentSelection()

        async def score(stop: object) -> AnswerTable:
            found = []
            for claim in stated:
                tables = [await score_world(directory, claim, each, asking, find_resources()) for each in worlds]
                if judges_agents:
                    tables.append(await score_agents(directory, claim, asking, find_resources()))
                found += [table.label(claim=claim) for table in tables]
            return join_tables(found)

        return Answers(wait_for(score))

    def __repr__(self) -> str:
        state = self.state
        return f"<Run {self.path}: {self.status}, {state.current_round} rounds, {state.actions_count:,} actions>"

    def _repr_html_(self) -> str:
        state = self.state
        figures = f"{self.status}, {state.current_round} rounds, {state.actions_count:,} actions, digest {self.digest}"
        parts = [results.render_heading(self.path), results.render_paragraph(figures)]
        for world in self.worlds:
            parts += [
                results.render_table(query_database(self._directory, world, _KINDS)[1], (world, "times")),
                results.render_table(query_database(self._directory, world, _ACTIVE)[1], ("most active", "actions")),
                results.render_text(self.transcript(world=world, last=_LAST_LINES)),
            ]
        return "".join(parts)

    def _one_world(self, world: str | None) -> str:
        if world is None and len(self.worlds) > 1:
            raise QueryFailed(f"this run has several worlds; say which with world=: {one_of(self.worlds)}")
        return self._check_world(world)[0]

    def _check_world(self, world: str | None) -> tuple[str, ...]:
        if world is None:
            return self.worlds
        if world not in self.worlds:
            near = hint(world, self.worlds) or f"; there is {one_of(self.worlds)}"
            raise QueryFailed(f"there is no world {world!r} in this run{near}")
        return (world,)

    def _actions_by_world(self, world: str | None) -> Iterator[tuple[str, Event]]:
        for name in self._check_world(world):
            yield from ((name, event) for event in self._directory.open_stream(name).read_actions())


def _parse_fields(fields: Fields) -> tuple[Field, ...]:
    if isinstance(fields, Mapping):
        return tuple(Field.parse(name, kind) for name, kind in fields.items())
    return parse_fields([fields] if isinstance(fields, str) else fields)


def _plan_asking(
    who: Any = None,
    where: str | None = None,
    sample: int | None = None,
    round: int | None = None,
    iterations: int = 1,
    model: str | None = None,
) -> Asking:
    """Take the options of `ask`. `who` is a person, a name or number, or several; or a text with commas."""
    if who is not None and not isinstance(who, str):
        several = [*who] if isinstance(who, Iterable) else [who]
        who = tuple(getattr(each, "name", each) for each in several)
    return Asking(AgentSelection(who, where, sample), round, model, iterations)


def open(path: str | Path) -> Run:
    """Open a run directory: one of this script, of another one, or of the command `shoal`."""
    return Run(RunDirectory.open(Path(path)))


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    quiet: bool = False,
) -> Run:
    """Run a scenario to its end: a `Scenario`, the content of a scenario file, or the path of one.

    The run is kept in `out`, or in runs/NAME-N. If `out` holds a run of the same scenario already, that is finished.
    `limits` are the options of the command, such as `{"max_cost": 2, "parallel": 8}`; they hold until others are given.
    """
    if isinstance(scenario, Mapping):
        scenario = validate(dict(scenario))
    session = Session(None if out is None else Path(out), LimitSettings.of(limits or {}))
    session.declare(scenario if isinstance(scenario, Scenario) else load(Path(scenario)))
    path = str(session.directory.path)
    session.work(f"running {path}", quiet, f"shoal.run(..., out={path!r})")
    session.close()
    return Run(session.directory)
