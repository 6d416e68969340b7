"""Predicts what a run with language minds will take: calls, tokens, dollars and time.

The run is played through in memory with the real worlds, prompts and memories, and no model is asked. In a large
population only a sample of the agents build their prompts, and the rest is taken to be like them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.models import Price, Question, Usage, find_price
from shoal.runs.planning.dry_run import (
    ACTION_TOKENS,
    USUAL_ACTIONS,
    CallSite,
    CallTally,
    DryRun,
    Measurements,
    play_dry,
)
from shoal.runs.resources import KnownServer
from shoal.scenario import BudgetSettings, Scenario, count_people
from shoal.slots.adaptive import Learned
from shoal.types import Versioned

#: People whose prompts are built, in each world.
MAX_FOLLOWED = 400
#: Hosted models usually take this long until they begin to answer, and write the answer at this speed.
LATENCY_SECONDS = 0.8
TOKENS_PER_SECOND = 80
#: Providers that cache only prompts marked for it, which our requests do not do.
UNCACHED = ("anthropic/",)

#: World and model.
Caller = tuple[str, str]


class Expected(msgspec.Struct, frozen=True):
    """What one model will be asked in one world."""

    world: str
    model: str
    calls: int
    #: The calls in which agents draw conclusions from what they remember.
    remembering: int
    #: The calls in which texts are embedded, to find what agents are reminded of.
    embedding: int
    #: The calls in which claims of interventions are judged, if none of them comes true.
    judging: int
    input: int
    #: The part of the input that repeats the beginning of an earlier prompt, for a server with a prefix cache.
    cached: int
    output: int
    #: Dollars, with cached input at its own price; None where the price is not known.
    cost: float | None
    #: Dollars if every token is paid in full, which is the most that it can be.
    cost_uncached: float | None
    #: Calls if every conversation ends with its first words; in other worlds, all calls.
    least_calls: int

    @property
    def tokens(self) -> int:
        return self.input + self.output


class Plan(msgspec.Struct, frozen=True):
    """What a run will take, model by model in each world."""

    name: str
    people: int
    #: People whose prompts were built. If these are not all, the figures are scaled from a sample.
    followed: int
    #: Of the world that goes on longest.
    rounds: int
    expected: tuple[Expected, ...]
    seconds: float
    #: What the time is computed from.
    seconds_per_call: float
    max_workers: int
    #: Whether it is from what earlier runs or `tune` found out about the server.
    is_learned: bool = False
    #: Sentences about limits of the budget that will be reached before the end.
    short: tuple[str, ...] = ()

    @property
    def total(self) -> Expected:
        """The sum over all models and worlds; a cost is None where a price is not known."""
        return _add_up(self.expected)

    @property
    def may_end_early(self) -> bool:
        """Whether there are conversations, whose length is not known. Then all figures are the most that they take."""
        return self.total.least_calls < self.total.calls

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models whose price is not known."""
        return tuple(dict.fromkeys(each.model for each in self.expected if each.cost is None))


async def plan_run(
    wanted: Scenario | Versioned[Scenario],
    latency_seconds: float | None = None,
    budget: BudgetSettings | None = None,
    max_followed: int = MAX_FOLLOWED,
    done: Mapping[str, int] | None = None,
    servers: Mapping[str, KnownServer] | None = None,
) -> Plan:
    """Predict what a scenario takes.

    `latency_seconds` is the time of one call, `servers` what is known about the server of each model. `budget` replaces
    the scenario's. `done` is, for each world of a run that goes on, the last round that has been paid for.
    """
    versions = wanted if isinstance(wanted, Versioned) else Versioned(wanted)
    scenario = versions.latest
    if not isinstance(scenario.mind, LanguageSettings):
        people = count_people(scenario.population)
        return Plan(scenario.name, people, 0, scenario.rounds, (), 0.0, 0.0, scenario.workers)
    run = await play_dry(versions, scenario.mind, max_followed)
    if done:
        run = run.after(done)
    prices = {name: known.price for name, known in (servers or {}).items()}
    expected = tuple(_predict_calls(run, scenario.mind, prices))
    total = _add_up(expected)
    chats = max(total.calls - total.embedding, 1)
    workers, server = scenario.workers, (servers or {}).get(scenario.mind.model, KnownServer(None, None))
    speed, learned = server.speed, server.learned if server.speed is None else None
    seconds_per_call = latency_seconds or LATENCY_SECONDS + total.output / chats / TOKENS_PER_SECOND
    if speed is not None:
        workers = min(workers, speed.slots)
        if latency_seconds is None:
            seconds_per_call = workers * speed.time_of(total.input - total.cached, total.output) / chats
    if learned is not None:
        workers = learned.in_flight if scenario.max_workers is None else workers
        workers = min(workers, learned.in_flight) if learned.is_wall else workers
        seconds_per_call = latency_seconds or learned.answer_seconds or seconds_per_call
    # Calls follow one another within the slowest world, or because only a limited number can be made at once.
    waves = max(
        sum(round.waves(workers) for round in rounds) / run.visibility[world] for world, rounds in run.rounds.items()
    )
    return Plan(
        name=scenario.name,
        people=run.people,
        followed=run.followed,
        rounds=run.last_round,
        expected=expected,
        seconds=max(max(waves, total.calls / workers) * seconds_per_call, *_find_rate_times(total, learned)),
        seconds_per_call=seconds_per_call,
        max_workers=workers,
        is_learned=learned is not None,
        short=tuple(_find_shortages(total, budget or scenario.budget)),
    )


async def collect_questions(scenario: Scenario, max_followed: int) -> list[Question]:
    """Return what the agents of a scenario would ask in their turns. No model is asked."""
    assert isinstance(scenario.mind, LanguageSettings)
    asked: list[Question] = []
    await play_dry(Versioned(scenario), scenario.mind, max_followed, asked.append)
    return asked


def _find_rate_times(total: Expected, learned: Learned | None) -> tuple[float, float]:
    """Return how long the calls and the tokens take at the rates that the server allows."""
    requests, tokens = (None, None) if learned is None else (learned.requests, learned.tokens)
    return (
        0.0 if requests is None else 60 * max(total.calls - requests.burst, 0) / requests.per_minute,
        0.0 if tokens is None else 60 * max(total.tokens - tokens.burst, 0) / tokens.per_minute,
    )


def _predict_calls(run: DryRun, settings: LanguageSettings, prices: Mapping[str, Price | None]) -> Iterator[Expected]:
    measured = run.measurements
    deciding = _scale_decisions(measured, min(USUAL_ACTIONS, settings.max_actions))
    turns: Counter[str] = Counter()
    followed: Counter[str] = Counter()
    for site, count in measured.turns.items():
        turns[site.world] += count
    for site, tally in measured.decided.items():
        followed[site.world] += round(tally.calls)
    # Calls beside turns are scaled to all agents: agents with more turns make more of them.
    remembering, embedding = _sum_by_caller(measured.remembered), _sum_by_caller(measured.embedded)
    judging = _sum_by_caller(measured.judged)
    for world, model in sorted({*deciding, *remembering, *embedding, *judging}):
        times = turns[world] / max(followed[world], 1)
        caller = world, model
        kinds = [deciding[caller], remembering[caller] * times, embedding[caller] * times, judging[caller]]
        total = sum(kinds, CallTally())
        decided, remembered, embedded, judged = (round(each.calls) for each in kinds)
        calls = decided + remembered + embedded + judged
        cached = 0 if model.startswith(UNCACHED) else round(total.cached)
        usage = Usage(round(total.input), round(total.output), cached)
        own = settings.price
        price = (prices.get(model) or find_price(model)) if own is None else Price(own.input, own.output)
        least = run.least_share[world]
        yield Expected(
            world=world,
            model=model,
            calls=calls,
            remembering=remembered,
            embedding=embedded,
            judging=judged,
            input=usage.input,
            cached=usage.cached,
            output=usage.output,
            cost=None if price is None else price.of(usage),
            cost_uncached=None if price is None else price.of(Usage(usage.input, usage.output)),
            least_calls=calls if least == 1 else round(decided * least),
        )


def _scale_decisions(measured: Measurements, actions: float) -> defaultdict[Caller, CallTally]:
    """Scale turns to all agents, each taken to be like those that were followed in the same round, or else in any.

    Each reply has this number of actions, of the length that is usual in the world.
    """
    usual, found = _sum_by_caller(measured.decided), defaultdict[Caller, CallTally](CallTally)
    for site, turns in measured.turns.items():
        followed, acts = measured.decided.get(site) or usual[site[:2]], measured.acts[site.world]
        action_tokens = acts.output / acts.calls if acts.calls else ACTION_TOKENS
        tokens = followed * (turns / max(followed.calls, 1))
        output = tokens.output + turns * actions * action_tokens
        found[site[:2]] += CallTally(turns, tokens.input, output, tokens.cached)
    return found


def _sum_by_caller(found: Mapping[CallSite, CallTally]) -> defaultdict[Caller, CallTally]:
    summed = defaultdict[Caller, CallTally](CallTally)
    for site, tally in found.items():
        summed[site[:2]] += tally
    return summed


def _find_shortages(found: Expected, budget: BudgetSettings) -> Iterator[str]:
    if budget.max_cost is not None and found.cost is not None and found.cost > budget.max_cost:
        yield f"max_cost is ${budget.max_cost:,.6g}, and ${found.cost:,.3g} are expected"
    if budget.max_tokens is not None and found.tokens > budget.max_tokens:
        yield f"max_tokens is {budget.max_tokens:,}, and {found.tokens:,} are expected"
    if budget.max_calls is not None and found.calls > budget.max_calls:
        yield f"max_calls is {budget.max_calls:,}, and {found.calls:,} are expected"


def _add_up(expected: Sequence[Expected]) -> Expected:
    """Add up what is expected of all worlds; a figure that one of them does not know is not known."""
    total: dict[str, Any] = {"world": "", "model": ""}
    for name in Expected.__struct_fields__[2:]:
        figures = [getattr(each, name) for each in expected]
        total[name] = None if None in figures else sum(figures, 0.0 if name.startswith("cost") else 0)
    return Expected(**total)
