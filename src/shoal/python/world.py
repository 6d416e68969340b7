"""A world and its people, as a script builds and runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from shoal.agents import OBJECTIVE
from shoal.engine import Facts
from shoal.errors import RunRefused, ScenarioInvalid
from shoal.python.person import Person, Who, name_of, names_of
from shoal.python.results import Answers, Figures, render_heading
from shoal.python.run import Fields, Run
from shoal.python.session import Session, slug
from shoal.runs import LimitSettings
from shoal.scenario import Scenario, check, describe_mismatch, lengthen, name_class, parse_minutes, validate
from shoal.text import format_count, hint, one_of
from shoal.types import Mind
from shoal.worlds import KIND_NAMES, BaseWorld


class Cast:
    """The people of a world, by name or in order. Groups and files of people are only counted until the world runs."""

    def __init__(self, world: str) -> None:
        self._world = world
        self._people: dict[str, Person] = {}
        self._left: list[Person] = []
        #: People, groups and files, in the order in which they were added.
        self.entries: list[Person | dict[str, Any]] = []

    def add(self, who: Person | Mapping[str, Any], has_begun: bool = False) -> Person | None:
        """Add a person, and return it; or a group. Once the world has begun, only single people can join."""
        if isinstance(who, Mapping):
            if "name" not in who and not has_begun:
                self.entries.append(dict(who))
                return None
            if "name" not in who:
                raise RunRefused(f"{self._world!r} is under way: people join one by one, each as a Person")
            who = Person(**who)
        if not isinstance(who, Person):
            raise ScenarioInvalid([describe_mismatch('a Person, or a mapping such as {"count": 20}', who)])
        if who.name in self._people or any(who.name == gone.name for gone in self._left if gone is not who):
            raise ScenarioInvalid([f"there is already somebody called {who.name!r} in {self._world!r}"])
        self._people[who.name] = who
        if who in self._left:
            self._left.remove(who)
        else:
            self.entries.append(who)
        return who

    def remove(self, who: Person, has_begun: bool) -> None:
        """Remove a person. One who was in the run stays among its people, and may come back."""
        if self._people.pop(who.name, None) is None:
            raise ScenarioInvalid([f"{who.name} is not in {self._world!r}"])
        if has_begun:
            self._left.append(who)
        else:
            self.entries.remove(who)

    def forget(self, who: Person) -> None:
        """Undo that a person was added."""
        del self._people[who.name]
        self.entries.remove(who)

    def to_scenario(self) -> list[dict[str, Any]]:
        """Return the entries of a scenario's population."""
        return [entry.to_scenario() if isinstance(entry, Person) else entry for entry in self.entries]

    def describe(self) -> str:
        people, groups = format_count(len(self), "person", "people"), len(self.entries) - len(self) - len(self._left)
        return f"{people} and {format_count(groups, 'group')} of people" if groups else people

    def __getitem__(self, who: str | int) -> Person:
        if isinstance(who, int):
            return list(self._people.values())[who]
        if who not in self._people:
            raise KeyError(f"there is nobody called {who!r} in {self._world!r}{hint(who, self._people)}")
        return self._people[who]

    def __iter__(self) -> Iterator[Person]:
        return iter(list(self._people.values()))

    def __len__(self) -> int:
        return len(self._people)

    def __contains__(self, who: object) -> bool:
        return who in self._people or who in self._people.values()

    def __repr__(self) -> str:
        return f"[{', '.join(self._people)}]" if self._people else f"<{self.describe()}>"


#: Functions of the user's own for interventions: whether one happens, and what happens then.
Condition: TypeAlias = Callable[[Facts], "bool | Awaitable[bool]"]
Effect: TypeAlias = Callable[[Facts], Any]
#: A span of time: a timedelta, a text such as `3 days`, or minutes.
Span: TypeAlias = timedelta | str | int
#: What a question is about: people, the world itself, or all people.
Asked: TypeAlias = "Who | Iterable[Who] | World | None"
People: TypeAlias = Iterable[Person | Mapping[str, Any]] | Mapping[str, Any] | int


class World:
    """A place where people meet: a room unless `kind` says otherwise. Nothing happens before `run`.

    Events that are added between two calls of `run` happen in the next round.
    """

    def __init__(  # noqa: PLR0913  # the one constructor: every setting is an argument
        self,
        name: str,
        people: People = (),
        *,
        kind: str | type[BaseWorld] = "room",
        topic: str | None = None,
        seed: int = 1,
        start: datetime | str | None = None,
        minutes_per_round: int = 60,
        hearing: str = "everyone",
        relations: Iterable[tuple[Who, Who, str] | tuple[Who, Who, str, str]] = (),
        follows: Mapping[str, Any] | str | None = None,
        mind: str | Mapping[str, Any] | type[Mind] = "heuristic",
        context: str | Sequence[str] = (),
        events: Iterable[Mapping[str, Any]] = (),
        interventions: Iterable[Mapping[str, Any]] = (),
        max_workers: int | None = None,
        deadline_seconds: float = 300,
        metrics: bool = True,
        out: str | Path | None = None,
        limits: Mapping[str, float] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.people = Cast(name)
        self._session = Session(None if out is None else Path(out), LimitSettings.of(limits or {}))
        self._kind = kind
        self._sequential = False
        self._settings = dict(settings or {})
        self._minutes = minutes_per_round
        self._events: list[dict[str, Any]] = [_to_plain(event) for event in events]
        self._interventions: list[dict[str, Any]] = [_to_plain(intervention) for intervention in interventions]
        self._declared = {
            "name": slug(name),
            "topic": topic,
            "context": context,
            "seed": seed,
            "time": {"minutes_per_round": minutes_per_round} | ({} if start is None else {"start": start}),
            "mind": _name_mind(mind),
            "max_workers": max_workers,
            "deadline_seconds": deadline_seconds,
            "metrics": metrics,
        } | ({} if follows is None else {"follows": follows})
        #: What was validated last, except for the number of rounds, and the scenario that it is.
        self._valid: tuple[dict[str, Any], Scenario] | None = None
        #: The name of the world in the run directory.
        self._place = _name_place(kind)
        if hearing != "everyone":
            self._must_be_room("hearing")
            self._settings["hearing"] = hearing
        for relation in relations:
            self.relate(*relation)
        if isinstance(people, int):
            people = {"count": people}
        self.add(*([people] if isinstance(people, Mapping | Person) else people))

    # People

    def add(self, *people: Person | Mapping[str, Any]) -> World:
        """Add people. In a world that has run already, a person comes in with the next round."""
        for who in people:
            added = self.people.add(who, has_begun=self._session.has_begun)
            if added is None:
                continue
            added.enter(self)
            if self._session.has_begun:
                try:
                    self.happen(join=[added])
                except ScenarioInvalid:
                    self.people.forget(added)
                    raise
        return self

    def remove(self, *people: Person | str) -> World:
        """Let people leave with the next round. They may be added again."""
        for who in people:
            person = who if isinstance(who, Person) else self.people[who]
            if self._session.has_begun:
                self.happen(leave=[person])
            self.people.remove(person, has_begun=self._session.has_begun)
            person.exit()
        return self

    def relate(self, first: Who, second: Who, relation: str, back: str | None = None) -> World:
        """Declare a relation of two people in a room, from the next round on. A pair may have several.

        Without `back` both know it, as sisters do. With it, the first one is `relation` to the second, and the second
        one is `back` to the first, or knows nothing of it if that is empty.
        """
        self._must_be_room("relations")
        pair, mutual = [name_of(first), name_of(second)], back is None
        declared = [{"between": pair, "relation": relation, "mutual": mutual}]
        declared += [{"between": pair[::-1], "relation": back, "mutual": False}] if back else []
        self._settings["relations"] = [*self._settings.get("relations", ()), *declared]
        return self

    # Events

    def happen(self, round: int | None = None, **event: Any) -> World:
        """Add an event, with the fields of a scenario's events: `world.happen(hear="Thunder.")`."""
        coming = self._session.rounds + 1
        if isinstance(round, int) and round < coming and not (round == 0 == self._session.rounds):
            raise RunRefused(f"round {round} of {self.name!r} is over; the next one is {coming}")
        dated = {**_to_plain(event), "round": coming if round is None else round}
        self._check_part("events", dated, next(iter(dated)))
        self._events.append(dated)
        return self

    def check_stimulus(self, stimulus: Mapping[str, Any]) -> None:
        """Check what a person of this world is to perceive; ScenarioInvalid if that cannot be."""
        self._check_part("events", self._to_event(stimulus), next(iter(stimulus)))

    def _check_part(self, part: str, declared: Mapping[str, Any], title: str) -> None:
        rounds = max(_round_of(declared), self._session.rounds + 1)
        problems = check({**self._list_values(), "rounds": rounds, part: [declared]})[1]
        # Whatever else is wrong is reported where it was declared.
        wrong = [replace(problem, path=problem.path[2:]) for problem in problems if problem.path[:2] == (part, 0)]
        if wrong:
            texts = (str(problem) for problem in wrong)
            raise ScenarioInvalid([text if text.startswith(f"{title}:") else f"{title}: {text}" for text in texts])

    def broadcast(self, text: str, to: Who | Iterable[Who] = (), *, round: int | None = None) -> World:
        """Send a message to all people, or to some."""
        return self.happen(round, broadcast=text, to=names_of(to))

    def change_context(
        self, context: str | Sequence[str], to: Who | Iterable[Who] = (), *, round: int | None = None
    ) -> World:
        """Replace the situation that all people are in, or some: they see it in every turn until it changes again."""
        return self.happen(round, context=context, to=names_of(to))

    def post(self, text: str, by: Who = "random", *, round: int | None = None) -> World:
        """Publish a post on a social platform in the name of a person."""
        return self.happen(round, post=text, by=name_of(by))

    def skip(self, span: Span | None = None, *, round: int | None = None, **units: float) -> World:
        """Skip time in which no person acts: `skip("3 days")`, `skip(days=3)`."""
        return self.happen(round, skip=_count_minutes(timedelta(**units) if span is None else span))

    def mute(self, who: Who | Iterable[Who], rounds: int = 1, *, round: int | None = None) -> World:
        """Keep people from acting for some rounds."""
        return self.happen(round, mute=names_of(who), rounds=rounds)

    def change(self, who: Who | Iterable[Who], *, round: int | None = None, **traits: Any) -> World:
        """Change traits of people: `world.change(ada, stance=0.5)`."""
        return self.happen(round, change=traits, to=names_of(who))

    def intervene(
        self,
        when: str | Condition | None = None,
        do: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Effect = (),
        **more: Any,
    ) -> World:
        """Add events for when a condition holds: `world.intervene("quiet('Ada') > 3", {"hear": "Ada?"})`.

        `when` may be a function that takes the `Facts` of the world and returns True or False, and `do` one that
        returns events. `judge="They agree on a plan."` is a claim that the language model must find to be true.
        """
        declared = {name: part for name, part in (("when", when), ("do", do), *more.items()) if part is not None}
        for part, name in (("when", "check"), ("do", "call"), ("check", "check"), ("call", "call")):
            if callable(function := declared.get(part)):
                del declared[part]
                called = getattr(function, "__qualname__", "")
                if not called or "<lambda>" in called:
                    what = f"{'a lambda' if called else repr(function)} has no name by which a resumed run finds it"
                    raise ScenarioInvalid([f"{what}; write a function with `def`"])
                declared[name] = _name_class(function)
        declared = _to_plain(declared)
        self._check_part("interventions", declared, "intervene")
        self._interventions.append(declared)
        return self

    # Running

    def run(
        self, rounds: int = 1, parallel: bool | None = None, *, every: Span | None = None, quiet: bool = False
    ) -> Run:
        """Run more rounds.

        `parallel`: True lets all people of a round act on the same picture; False lets each see what the one before did
        (in rooms); None keeps what was set before. `every`: the time from one round to the next. A script that is run
        again with the same `out` continues its run: rounds that are done are not done again.
        """
        if self._declare(rounds, parallel, every):
            again = "world.run(), or where `out` was given by running the script again"
            self._session.work(self.name, quiet, again)
        return self.results

    async def run_async(
        self, rounds: int = 1, parallel: bool | None = None, *, every: Span | None = None, quiet: bool = False
    ) -> Run:
        """Run more rounds from a coroutine. Cancelling it stops the run cleanly."""
        if self._declare(rounds, parallel, every):
            await self._session.work_async(self.name, quiet)
        return self.results

    def _declare(self, rounds: object, parallel: bool | None, every: Span | None) -> bool:
        """Declare the rounds to run; return False for a history that ended by itself, which has no more rounds."""
        if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
            raise ScenarioInvalid([f"rounds: {describe_mismatch('a whole number, at least 1', rounds)}"])
        if parallel is False and self._kind != "room":
            raise ScenarioInvalid(
                [
                    "parallel=False is for rooms; elsewhere it is the world that says who acts on which picture "
                    "(in a world of your own: `turns`)"
                ]
            )
        if parallel is not None:
            self._sequential = not parallel
        if self._session.is_over:
            return False
        first, last = self._session.rounds + 1, self._session.rounds + rounds
        events = [
            *self._events,
            *[
                {**self._to_event(stimulus), "to": [who.name], "round": first}
                for who in self.people
                for stimulus in who.waiting
            ],
            *self._list_skips(first, last, every),
        ]
        self._session.declare(self.scenario(last, events))
        self._events = events
        for person in self.people:
            person.waiting.clear()
        return True

    def scenario(self, rounds: int, events: Sequence[Mapping[str, Any]] | None = None) -> Scenario:
        """Return the scenario of the run up to a round. Events after it wait for a later call of `run`."""
        due = [event for event in (self._events if events is None else events) if _round_of(event) <= rounds]
        values = {**self._list_values(), "events": due, "interventions": list(self._interventions)}
        known = self._valid[1] if self._valid is not None and self._valid[0] == values else None
        scenario = lengthen(known, rounds) if known is not None and known.rounds <= rounds else None
        scenario = scenario or validate({**values, "rounds": rounds}, f"World({self.name!r})")
        self._valid = values, scenario
        return scenario

    def _list_values(self) -> dict[str, Any]:
        """List the values of the scenario, without events and interventions."""
        if isinstance(self._kind, str):
            turns = {"turns": "sequential" if self._sequential else "parallel"} if self._kind == "room" else {}
            settings = {"kind": self._kind, **turns, **self._settings}
        else:
            settings = {"kind": _name_class(self._kind), "settings": self._settings}
        return {**self._declared, "population": self.people.to_scenario(), "worlds": {self._place: settings}}

    def _to_event(self, stimulus: Mapping[str, Any]) -> dict[str, Any]:
        """Turn what a person perceives into an event. Outside of rooms, what it hears is a message to it."""
        is_message = "hear" in stimulus and self._kind != "room"
        return {"broadcast": stimulus["hear"]} if is_message else dict(stimulus)

    def _list_skips(self, first: int, last: int, every: Span | None) -> list[dict[str, Any]]:
        """List the skips of time that put `every` between one round and the next."""
        if every is None:
            return []
        skipped = _count_minutes(every) - self._minutes
        if skipped < 0:
            whole = f"a round of {self.name!r} takes {self._minutes} minutes"
            raise ScenarioInvalid([f"every: {whole}; give World a smaller minutes_per_round"])
        return [{"skip": skipped, "round": round} for round in range(max(first, 2), last + 1)] if skipped else []

    def _must_be_room(self, what: str) -> None:
        if self._kind != "room":
            raise ScenarioInvalid([f"{what}: only a room knows this; leave it away, or use kind='room'"])

    # Questions to people, which change nothing

    def ask(self, question: str | Path | Sequence[str | Mapping[str, Any]], who: Asked = None, **more: Any) -> Answers:
        """Interview people as `Run.ask` does: those in `who`, or all."""
        return self.results.ask(question, who=who, **more)

    def extract(self, fields: Fields, objective: str = OBJECTIVE, who: Asked = None, **more: Any) -> Answers:
        """Fill in a form from the record of each person, as `Run.extract` does; with `who=world` of the whole world."""
        about = {"world": self._place} if who is self else {"who": who}
        return self.results.extract(fields, objective, **about, **more)

    def score(self, claims: str | Sequence[str], who: Asked = None, **more: Any) -> Answers:
        """Score claims on each person as `Run.score` does; with `who=world` on the whole world."""
        about = {"world": self._place} if who is self else {"who": who}
        return self.results.score(claims, **about, **more)

    # Results

    @property
    def results(self) -> Run:
        """The run so far."""
        return Run(self._session.directory)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._session.directory.path

    @property
    def rounds(self) -> int:
        """The number of rounds that were run."""
        return self._session.rounds

    @property
    def metrics(self) -> Figures:
        """Steps by mode, measured speedup, errors, timeouts and latencies of decisions."""
        return self.results.metrics if self._session.has_begun else Figures.of(None)

    def __repr__(self) -> str:
        return f"<World {self.name!r}: {self.people.describe()}, {self.rounds} rounds>"

    def _repr_html_(self) -> str:
        head = render_heading(f"{self.name}: {self.people.describe()}, {self.rounds} rounds")
        return head + (self.results._repr_html_() if self._session.has_begun else "")


def _name_place(kind: object) -> str:
    """Return the name of the world in the run directory."""
    if isinstance(kind, type) and issubclass(kind, BaseWorld):
        return slug(kind.__name__)
    if kind in KIND_NAMES:
        return str(kind)
    near = hint(kind, KIND_NAMES) if isinstance(kind, str) else ""
    raise ScenarioInvalid(
        [f"kind: {describe_mismatch(f'{one_of(KIND_NAMES)}, or a subclass of shoal.BaseWorld', kind)}{near}"]
    )


def _name_mind(mind: object) -> object:
    """Return a mind as a scenario names it."""
    if isinstance(mind, Mapping):
        return {**mind, "kind": _name_mind(mind["kind"])} if "kind" in mind else dict(mind)
    if isinstance(mind, Mind):
        raise ScenarioInvalid([f"mind: give the class itself, {type(mind).__name__}, and not an object made from it"])
    if isinstance(mind, type):
        if not issubclass(mind, Mind):
            raise ScenarioInvalid([f"mind: {mind.__name__} is not a subclass of shoal.Mind"])
        return _name_class(mind)
    return mind


def _name_class(kind: type | Callable[..., object]) -> str:
    """Return a class or function as a scenario names it; ScenarioInvalid where a resumed run could not find it."""
    name = name_class(kind)
    if "<locals>" in name:
        where = "is defined inside a function, where a resumed run could not find it"
        raise ScenarioInvalid([f"{kind.__qualname__.split('.')[-1]} {where}; define it at the top of the script"])
    return name


def _to_plain(value: Any) -> Any:
    """Turn an event into plain values: people into their names, and one alone into a list where several may stand."""
    if isinstance(value, Mapping):
        plain = {key: _to_plain(below) for key, below in value.items()}
        return plain | {
            key: names_of(plain[key])
            for key in ("to", "mute", "join", "leave", "suspend", "cut")
            if isinstance(plain.get(key), str | int)
        }
    return [_to_plain(below) for below in value] if isinstance(value, list | tuple) else name_of(value)


def _round_of(event: Mapping[str, Any]) -> int:
    """Return the round of an event; 0 where it has none, and where validation will refuse what it has."""
    round = event.get("round", 0)
    return round if isinstance(round, int) else 0


def _count_minutes(span: Span) -> int:
    """Return whole minutes; ScenarioInvalid for what is no span of time."""
    try:
        return parse_minutes(span.total_seconds() / 60 if isinstance(span, timedelta) else span)
    except ValueError as error:
        raise ScenarioInvalid([str(error)]) from None
