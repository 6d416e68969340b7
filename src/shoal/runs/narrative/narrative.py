"""What happened in a run, in sentences that each name their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from shoal.engine import TOPIC
from shoal.formats import Drawing
from shoal.runs.directory import RunDirectory
from shoal.runs.narrative.turning_points import TurningPoint, find_turning_points
from shoal.runs.network import NetworkHistory
from shoal.runs.plots.curves import draw_curves
from shoal.runs.plots.history import WorldHistory, read_history
from shoal.runs.plots.ridges import draw_ridges
from shoal.runs.reports import Summary, WorldSummary, summarize
from shoal.runs.sinks import open_graph
from shoal.scenario import Scenario
from shoal.sinks import FoundEpisode, GraphStore, find_announcements, find_reacted_posts, find_text, read_events
from shoal.text import clip, format_count, join_words

#: A figure must turn by this much to be spoken of. Activity counts actions per person.
_LEAST_TURNS = {"mean": 0.04, "polarisation": 0.05, "reach": 0.08, "activity": 0.1}
#: From here on an opinion is for or against something.
_LEANING = 0.2
_MAX_PEOPLE = 5
_MAX_MOVED = 3
_POST_CHARS = 120
_CLAIM_CHARS = 80


@dataclass(frozen=True, slots=True)
class NarrativeStatement:
    """One sentence, and what shows it: ids of actions, and figures with their rounds."""

    text: str
    events: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NarrativeSection:
    """Sentences and pictures under one heading."""

    heading: str
    statements: tuple[NarrativeStatement, ...]
    drawings: tuple[Drawing, ...] = ()


@dataclass(frozen=True, slots=True)
class RunNarrative:
    """The report of a run."""

    run: str
    title: str
    sections: tuple[NarrativeSection, ...]
    #: Id of an action -> the sentence about it.
    evidence: Mapping[str, FoundEpisode] = field(default_factory=dict)


@dataclass(slots=True)
class Influence:
    """What moved with one person's posts."""

    agent: int
    #: How far others moved towards what the posts say, in all.
    moved: float = 0.0
    #: Person -> how far they moved, and the action that shows it.
    people: dict[int, tuple[float, str]] = field(default_factory=dict)


def tell_run(run: RunDirectory) -> RunNarrative:
    """Tell what happened in a run, also while it goes on, from what is recorded. No model is asked."""
    summary, scenario = summarize(run), run.scenario_versions.latest
    beliefs = {claim.id: f"belief in “{claim.id}”" for claim in scenario.claims}
    subjects = {TOPIC: f"opinion on {scenario.topic or 'the topic'}", **beliefs}
    with open_graph(run) as graph:
        sections = [NarrativeSection("In short", tuple(_tell_outline(summary, scenario, subjects)))]
        for world in summary.worlds:
            history = read_history(run, world.name, run.path.name)
            if history is not None:
                prefix = f"{world.name}: " if len(summary.worlds) > 1 else ""
                teller = _WorldTeller(run, graph, history, world, subjects)
                curves = [each for each in draw_curves([history]) if each.name.split("-")[0] in _LEAST_TURNS]
                sections += [
                    NarrativeSection(f"{prefix}Turning points", tuple(_tell_turns(teller)), tuple(curves)),
                    NarrativeSection(f"{prefix}Who moved whom", tuple(_tell_influence(teller))),
                    NarrativeSection(f"{prefix}What spread", tuple(_tell_cascades(teller))),
                    NarrativeSection(f"{prefix}Camps", tuple(_tell_camps(teller)), tuple(draw_ridges(history))),
                    NarrativeSection(f"{prefix}People", tuple(_tell_people(teller))),
                ]
        sections.append(NarrativeSection("How far to trust this", tuple(_tell_quality(summary))))
        sections = [section for section in sections if section.statements or section.drawings]
        cited = {event for section in sections for each in section.statements for event in each.events}
        evidence = {episode.event: episode for episode in read_events(graph, sorted(cited))}
    title = f"What happened in {run.path.name}" + (f": {summary.topic}" if summary.topic else "")
    return RunNarrative(str(run.path), title, tuple(sections), evidence)


def _tell_outline(summary: Summary, scenario: Scenario, subjects: Mapping[str, str]) -> Iterator[NarrativeStatement]:
    for world in summary.worlds:
        done = f"{format_count(summary.people, 'person', 'people')} took {format_count(world.actions, 'action')}"
        rounds = format_count(world.round, "round")
        yield NarrativeStatement(f"{done} in {rounds} ({world.simulated_hours:g} simulated hours) on {world.name}.")
        for outcome in world.outcomes:
            if outcome.name == "mean":
                change = outcome.last - outcome.first
                moved = f"{'rose' if change > 0 else 'fell'} from {outcome.first:+.2f} to {outcome.last:+.2f}"
                text = f"did not move ({outcome.last:+.2f})" if abs(change) < 0.01 else moved
                figure = f"{world.name}: mean of {outcome.about}, rounds 0 to {world.round}"
                yield NarrativeStatement(f"The mean {subjects[outcome.about]} {text}.", figures=(figure,))
    for claim in scenario.claims:
        said = f"“{claim.id}” is the claim “{clip(claim.text, _CLAIM_CHARS)}”, which is {claim.truth}."
        yield NarrativeStatement(said.replace("which is open", "of which nobody knows whether it is true"))
    if summary.error:
        yield NarrativeStatement(f"The run is {summary.status}: {clip(summary.error, 300)}")


@dataclass(frozen=True, slots=True)
class _WorldTeller:
    """What is known of one world, for the sections about it."""

    run: RunDirectory
    graph: GraphStore
    history: WorldHistory
    summary: WorldSummary
    #: What each opinion is about, in words.
    subjects: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.history.world

    def name_person(self, agent: int) -> str:
        return self.history.names.get(agent, f"agent {agent}")


def _tell_turns(teller: _WorldTeller) -> Iterator[NarrativeStatement]:
    """Tell in which rounds figures changed their course, and what was heard and most reacted to just before."""
    found = [
        (turn, name, about)
        for (name, about), figure in teller.history.figures.items()
        for turn in (find_turning_points(figure, _LEAST_TURNS[name]) if name in _LEAST_TURNS else ())
    ]
    turns: dict[int, list[tuple[TurningPoint, str, str]]] = {}
    for turn, name, about in sorted(found, key=lambda each: each[0].round):
        near = next((round for round in turns if turn.round - round <= 1), turn.round)
        turns.setdefault(near, []).append((turn, name, about))
    for round, changed in turns.items():
        first = max(round - 2, 0)
        announced = find_announcements(teller.graph, teller.name, first, round)
        posts = find_reacted_posts(teller.graph, teller.name, first, round, limit=1)
        changes = (
            f"{_name_figure(teller, name, about)} {turn.before:+.3f}, then {turn.after:+.3f}"
            for turn, name, about in changed
        )
        text = f"The course changed in round {round}. Per round: {'; '.join(changes)}."
        text += "".join(f" Before: {clip(episode.text, _POST_CHARS)}" for episode in announced[-1:])
        text += "".join(f" Most reactions just before: {clip(episode.text, _POST_CHARS)}" for episode in posts)
        figures = tuple(f"{teller.name}: {name}{f' of {about}' if about else ''}" for _, name, about in changed)
        yield NarrativeStatement(text, tuple(episode.event for episode in (*announced[-1:], *posts)), figures)


def _name_figure(teller: _WorldTeller, name: str, about: str) -> str:
    subject = teller.subjects.get(about, about)
    return {"reach": f"reach of “{about}”", "activity": "actions per person"}.get(
        name, f"{name} of the {subject}" if name == "polarisation" else f"{name} {subject}"
    )


def _tell_influence(teller: _WorldTeller) -> Iterator[NarrativeStatement]:
    influences = measure_influence(teller.run, teller.name)
    for influence in influences[:_MAX_PEOPLE]:
        most = sorted(influence.people.items(), key=lambda each: (-each[1][0], each[0]))[:_MAX_MOVED]
        named = join_words((f"{teller.name_person(agent)} ({moved:.2f})" for agent, (moved, _) in most), _MAX_MOVED)
        people = format_count(len(influence.people), "person", "people")
        text = f"{people} moved towards posts of {teller.name_person(influence.agent)} by {influence.moved:.2f} in all"
        yield NarrativeStatement(f"{text}, most of all {named}.", tuple(event for _, (_, event) in most))
    if influences:
        moved = sum(one.moved for one in influences)
        first = sum(one.moved for one in influences[:_MAX_PEOPLE])
        yield NarrativeStatement(
            f"These {min(len(influences), _MAX_PEOPLE)} authors account for {first / moved:.0%} of all movement towards"
            f" posts that people reacted to ({moved:.1f} in all, from {format_count(len(influences), 'author')})."
        )


def measure_influence(run: RunDirectory, world: str) -> list[Influence]:
    """Sum up the influence of each author on a platform, the largest first.

    This shows what went together, not what caused what.
    """
    history = NetworkHistory(run, world)
    history.refresh()
    found: dict[int, Influence] = {}
    # Only reactions leave an action that shows what moved a person.
    for move in (move for move in history.moves if move.event):
        influence = found.setdefault(move.author, Influence(move.author))
        influence.moved += abs(move.amount)
        moved, first = influence.people.get(move.agent, (0.0, move.event))
        influence.people[move.agent] = (moved + abs(move.amount), first)
    return sorted(found.values(), key=lambda one: (-one.moved, one.agent))


def _tell_cascades(teller: _WorldTeller) -> Iterator[NarrativeStatement]:
    for shares in teller.history.cascades:
        root = shares[0]
        quotes = sum(share.is_quote for share in shares)
        depth = max(share.depth for share in shares)
        text = (
            f"A post of {teller.name_person(root.agent)}, “{clip(root.text, _POST_CHARS)}”, was passed on"
            f" {format_count(len(shares) - 1, 'time')}, {quotes} of them with words of their own, and reached"
            f" {format_count(depth, 'step')} from its author."
        )
        post = find_text(teller.graph, root.agent, root.text)
        yield NarrativeStatement(text, () if post is None else (post.event,))


def _tell_camps(teller: _WorldTeller) -> Iterator[NarrativeStatement]:
    for about, opinions in teller.history.opinions.items():
        first, last = opinions[0], opinions[-1]
        known = ~np.isnan(first) & ~np.isnan(last)
        if not known.any():
            continue
        before, after = (np.sign(np.where(np.abs(row[known]) < _LEANING, 0.0, row[known])) for row in (first, last))
        counts = [f"{int((after == side).sum())} (before {int((before == side).sum())})" for side in (1, 0, -1)]
        crossed = int((before * after < 0).sum())
        figure = f"{teller.name}: opinion of {about}, first and last round"
        yield NarrativeStatement(
            f"{teller.subjects[about][:1].upper()}{teller.subjects[about][1:]}: {counts[0]} people ended in favour,"
            f" {counts[1]} undecided and {counts[2]} against; {crossed} changed sides.",
            figures=(figure,),
        )


def _tell_people(teller: _WorldTeller) -> Iterator[NarrativeStatement]:
    active = teller.summary.active
    if active:
        named = join_words((f"{person.name} ({person.actions})" for person in active), _MAX_PEOPLE)
        yield NarrativeStatement(f"Most active were {named}.")
    for post in teller.summary.top_posts[:1]:
        liked = f"The most liked post, with {format_count(post.likes, 'like')}, was “{clip(post.text, _POST_CHARS)}” by"
        yield NarrativeStatement(f"{liked} {post.author}.")
    for one in teller.summary.interventions:
        rounds = join_words(map(str, one.rounds), 8)
        yield NarrativeStatement(f"The intervention “{one.name}” happened in round {rounds}.")


def _tell_quality(summary: Summary) -> Iterator[NarrativeStatement]:
    yield NarrativeStatement(f"The quality of the run is {summary.quality.verdict}.")
    for finding in summary.quality.findings:
        yield NarrativeStatement(f"{finding}.")
    yield NarrativeStatement(
        f"Minds: {summary.mind}; seed {summary.seed}. One run shows what can happen, not how often."
    )
    yield NarrativeStatement(
        "The course changes where two straight lines fit a figure better than one. “Moved towards posts” means that an"
        " opinion changed in the round of a reaction, in the direction of the post; other causes are possible."
    )
