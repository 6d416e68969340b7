"""What a scenario tells language models: which variables its templates may use, and which personas a limit shortens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.agents import LanguageSettings, PromptSettings
from shoal.agents.language import PersonaTexts, PromptBook, ShortenedPersona
from shoal.scenario.declared.events import ContextEvent
from shoal.scenario.declared.population import FileEntry, GroupEntry, MarginalsEntry, PopulationEntry
from shoal.scenario.sampling.sampler import measure_group_fit, sample
from shoal.scenario.scenario import Scenario
from shoal.text import format_count

#: People whose texts are written to see whether they are cut, and of those that are, how many are named.
_MAX_LOOKED_AT = 20_000
_MAX_NAMED = 5


def list_prompts(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], PromptSettings]]:
    """Yield the settings of prompts, each with its path in the scenario."""
    if isinstance(mind := scenario.mind, LanguageSettings):
        yield ("mind", "prompt"), mind.prompt
        for group, own in mind.by_group.items():
            if not isinstance(own, str):
                yield ("mind", "by_group", group, "prompt"), own.prompt


def list_trait_names(scenario: Scenario) -> set[str]:
    """Return the names of all traits that people may have."""
    return {name for entry in scenario.population for name in _list_traits(entry)}


def _list_traits(entry: PopulationEntry) -> Iterable[str]:
    if isinstance(entry, FileEntry):
        return entry.roster.traits
    return entry.trait_names if isinstance(entry, GroupEntry) else entry.traits


def find_shortened_personas(scenario: Scenario) -> Iterator[ShortenedPersona]:
    """Yield the people whose personas a limit shortens in prompts."""
    if all(prompt.persona_tokens is None for _, prompt in list_prompts(scenario)):
        return
    assert isinstance(scenario.mind, LanguageSettings)
    people = sample(scenario)
    texts, books = PersonaTexts(people, scenario.topic), dict[str | None, PromptBook]()
    for agent in range(min(len(people), _MAX_LOOKED_AT)):
        group = texts.group(agent)
        book = books.get(group)
        if book is None:
            book = books[group] = PromptBook(scenario.mind.for_group(group).prompt, topic=scenario.topic)
        shortened = texts.find_shortened(agent, book)
        if shortened is not None:
            yield shortened


def describe_unheeded(scenario: Scenario) -> list[str]:
    """Say what has no effect because the mind is no language model: claims to judge, and situations to be in."""
    kind, rules = scenario.mind.kind, scenario.interventions
    if isinstance(scenario.mind, LanguageSettings):
        return []
    notes = [
        f"intervention {rule.title!r} never happens: a language model judges its claim, and the mind is {kind}"
        for rule in rules
        if rule.judge is not None
    ]
    events = [*scenario.events, *(event for rule in rules for event in rule.do)]
    if kind in ("heuristic", "scripted") and (
        scenario.context or any(isinstance(event, ContextEvent) for event in events)
    ):
        notes.append(f"the {kind} mind does not read the `context`, so it changes nothing in what people do")
    return notes


def describe_shortened_personas(scenario: Scenario) -> list[str]:
    """Say whose personas are cut and by how much, the most first; nothing where no limit is set."""
    found = sorted(find_shortened_personas(scenario), key=lambda one: one.kept - one.tokens)
    lines = [
        f"of {one.name}, {one.kept:,} of {one.tokens:,} tokens are told to the model" for one in found[:_MAX_NAMED]
    ]
    if len(found) > _MAX_NAMED:
        lines.append(f"of {format_count(len(found) - _MAX_NAMED, 'more person', 'more people')} something is cut too")
    if lines:
        lines[-1] += "; `prompt.persona_tokens` of the mind sets the limit"
    return lines


def describe_notes(scenario: Scenario) -> list[str]:
    """Say what a user should know about a valid scenario before it runs."""
    return [*describe_unheeded(scenario), *describe_fits(scenario), *describe_shortened_personas(scenario)]


def describe_fits(scenario: Scenario) -> list[str]:
    """Say how well the people who are grown from tables fit them."""
    notes = []
    for number, entry in enumerate(scenario.population):
        if isinstance(entry, MarginalsEntry):
            worst = max(measure_group_fit(scenario, number), key=lambda fit: fit.largest)
            people, tables = format_count(entry.count, "person", "people"), format_count(len(entry.tables), "table")
            where = f"{worst.table.title}: {', '.join(worst.cell)}"
            notes.append(f"{people} fit {tables} within {worst.largest:.2f} percentage points; the worst is {where}")
    return notes
