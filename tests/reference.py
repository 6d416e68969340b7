"""Writes the generated parts of the documentation: scenario fields, database tables, the map of the code.

python -m tests.reference

A generated part stands between two comments, `<!-- generated: NAME -->` and `<!-- end -->`; the rest of a page is
written by hand. tests/test_reference.py fails when a part is not what this module would write.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from annotated_types import Ge, Gt, Le, MaxLen
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from shoal.agents.language.template import MOMENTARY, PERSONAL, SHARED
from shoal.agents.language.template import PARTS as PROMPT_PARTS
from shoal.agents.settings import (
    GroupMindSettings,
    HeuristicSettings,
    LanguageSettings,
    Latency,
    MeasureSettings,
    MemorySettings,
    PriceSettings,
    PromptSettings,
    ScriptedSettings,
    ScriptedTurn,
)
from shoal.experiments.metrics import METRICS
from shoal.runs.reports.quality import CHECKS
from shoal.scenario.declared.claims import DeclaredClaim
from shoal.scenario.declared.distributions import (
    Activity,
    Age,
    Beta,
    Choice,
    GenderWeights,
    InterestChoice,
    Interests,
    Normal,
    Numeric,
    Stance,
    Trait,
    Uniform,
    Weights,
)
from shoal.scenario.declared.events import (
    BroadcastEvent,
    ChangeEvent,
    ContextEvent,
    CutEvent,
    EventField,
    GiveBackEvent,
    JoinEvent,
    LeaveEvent,
    MuteEvent,
    PostEvent,
    SeatEvent,
    SkipEvent,
    StimulusEvent,
    StopEvent,
    SuspendEvent,
    parse_minutes,
)
from shoal.scenario.declared.follows import EdgeColumns, Follows, FollowSettings
from shoal.scenario.declared.interventions import FACTS, QUESTIONS, Intervention, JudgedClaim
from shoal.scenario.declared.kinds import MindField, OwnMindSettings, OwnWorldSettings, Worlds
from shoal.scenario.declared.population import (
    AssistantEntry,
    ColumnChoice,
    Entries,
    FileEntry,
    GroupEntry,
    MarginalsEntry,
    PersonEntry,
)
from shoal.scenario.declared.sinks import SinkSettings
from shoal.scenario.fields import Hours, Who
from shoal.scenario.importers.columns import FileColumn
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.worlds.base import BaseWorld
from shoal.worlds.clock import TimeSettings
from shoal.worlds.dialogue.settings import DialogueSettings, SceneSettings, StopSettings
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.room.settings import RelationSettings, RoomSettings
from shoal.worlds.room.world import Room
from shoal.worlds.social import database as tables
from shoal.worlds.social.settings import FeedSettings, SocialSettings

DOCS = Path(__file__).parent.parent / "docs"
SOURCE = Path(__file__).parent.parent / "src" / "shoal"

#: Every model of a scenario and what its section is called. A model that is missing here is an error.
TITLES: Mapping[type[BaseModel], str] = {
    Scenario: "Scenario fields",
    DeclaredClaim: "Claim",
    TimeSettings: "Time",
    PersonEntry: "Person",
    GroupEntry: "Group",
    MarginalsEntry: "Group from tables",
    AssistantEntry: "Assistant",
    FileEntry: "File of people",
    FileColumn: "Column",
    Normal: "Normal",
    Uniform: "Uniform",
    Beta: "Beta",
    Choice: "Choice",
    Interests: "Interests",
    FollowSettings: "Follow graph",
    EdgeColumns: "Edge columns",
    SocialSettings: "Platform",
    FeedSettings: "Feed",
    HeuristicSettings: "Heuristic mind",
    Latency: "Latency",
    ScriptedSettings: "Scripted mind",
    ScriptedTurn: "Scripted turn",
    LanguageSettings: "Language mind",
    PromptSettings: "Prompt",
    GroupMindSettings: "Minds of a group",
    PriceSettings: "Price",
    MemorySettings: "Memory",
    BudgetSettings: "Budget",
    SinkSettings: "Sink",
    MeasureSettings: "Survey of opinions",
    RoomSettings: "Room",
    RelationSettings: "Relation",
    DialogueSettings: "Dialogue",
    SceneSettings: "Scene",
    StopSettings: "End of a scene",
    OwnWorldSettings: "World of one's own",
    OwnMindSettings: "Mind of one's own",
    PostEvent: "Post event",
    BroadcastEvent: "Broadcast event",
    StimulusEvent: "Stimulus event",
    ChangeEvent: "Change event",
    ContextEvent: "Context event",
    MuteEvent: "Mute event",
    JoinEvent: "Join event",
    LeaveEvent: "Leave event",
    SuspendEvent: "Suspend event",
    CutEvent: "Cut event",
    StopEvent: "Stop event",
    SeatEvent: "Seat event",
    GiveBackEvent: "Give-back event",
    SkipEvent: "Skip event",
    Intervention: "Intervention",
    JudgedClaim: "Judged claim",
}

_DISTRIBUTION = "number or [distribution](#distributions)"
#: Shapes that accept more than their type says, because something turns short forms into the long one first.
_SHAPES: tuple[tuple[Any, str], ...] = (
    (
        Entries,
        "[group](#group) or [file](#file-of-people), or list of these, [people](#person) and [assistants](#assistant)",
    ),
    (ColumnChoice, "name of a column, or [settings](#column)"),
    (Follows, "name of a graph, or [settings](#follow-graph)"),
    (
        Worlds,
        "list of kinds, or names with settings ([platform](#platform), [room](#room), [dialogue](#dialogue), "
        "[one's own](#world-of-ones-own))",
    ),
    (
        MindField,
        "`heuristic`, `scripted`, `module:Class`, or settings ([heuristic](#heuristic-mind), "
        "[scripted](#scripted-mind), [language](#language-mind), [one's own](#mind-of-ones-own))",
    ),
    (EventField, "[event](#events)"),
    (Annotated[int, BeforeValidator(parse_minutes)], "time: `3 days`, `2 hours`, or minutes"),
    (Hours, "hours: `8-22`, `8-12,18-22`, `[8, 9]`"),
    (Who, "name or number"),
    (Age, f"{_DISTRIBUTION}, 0 to 120"),
    (Activity, f"{_DISTRIBUTION}, 0 to 1"),
    (Stance, f"{_DISTRIBUTION}, -1 to 1, or a stance in words"),
    (Trait, f"{_DISTRIBUTION}, or [words](#distributions)"),
    (Numeric, _DISTRIBUTION),
    (GenderWeights, "[words](#distributions): female, male, other"),
    (InterestChoice, "[words](#distributions), or [settings](#interests)"),
    (Weights, "[words](#distributions)"),
)
_TYPES: Mapping[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    datetime: "date and time",
    Any: "anything",
}


def write_scenario_fields() -> str:
    """Write a section for each model, in the order in which a reader meets them."""
    return "\n\n".join(_write_section(model) for model in _list_models(Scenario, []))


def write_conditions() -> str:
    """Write the tables of facts and questions of conditions."""
    lines = ["| fact | is |", "|---|---|", *(f"| `{name}` | {words} |" for name, words in FACTS.items())]
    lines += ["", "| question | is |", "|---|---|"]
    return "\n".join([*lines, *(f'| `{name}("...")` | {words} |' for name, words in QUESTIONS.items())])


def write_quality_checks() -> str:
    """Write the table of what can be wrong with a run, and from which share on."""
    lines = ["| finding | what | doubtful from | bad from | of at least |", "|---|---|---|---|---|"]
    for name, check in CHECKS.items():
        bad = "never" if check.bad is None else f"{check.bad:.0%}"
        lines.append(f"| `{name}` | {check.words} | {check.doubtful:.0%} | {bad} | {check.least} |")
    return "\n".join(lines)


def write_database_tables() -> str:
    """Write the tables of a social platform."""
    return _write_tables(tables.SCHEMA + tables.CLAIM_COLUMNS)


def _write_own_tables(world: type[BaseWorld]) -> str:
    """Write the tables that a kind of world has besides the common ones."""
    return _write_tables(world.tables)


def _write_tables(schema: str) -> str:
    """Write the tables of a schema, as SQLite describes them."""
    lines = ["| table | columns |", "|---|---|"]
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema)
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
        for (name,) in names:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
            lines.append(f"| `{name}` | {', '.join(columns)} |")
    return "\n".join(lines)


def write_code_map() -> str:
    """Write every room with its modules, from their docstrings, and the names that other rooms may use."""
    sections = []
    for room in [SOURCE, *sorted(path.parent for path in SOURCE.glob("*/**/__init__.py"))]:
        contents = ast.parse((room / "__init__.py").read_text())
        modules = {path: ast.parse(path.read_text()) for path in sorted(room.glob("*.py")) if path.stem != "__init__"}
        purpose = (ast.get_docstring(contents) or "").partition("\n")[0]
        lines = [f"{'##' if room.parent == SOURCE else '###'} {'.'.join(room.relative_to(SOURCE.parent).parts)}", ""]
        lines += [purpose, ""] if room != SOURCE else []
        if modules:
            lines += ["| module | holds |", "|---|---|"]
            lines += [f"| `{path.stem}` | {_first_sentence(tree)} |" for path, tree in modules.items()]
        listed = [name.name for node in contents.body if isinstance(node, ast.ImportFrom) for name in node.names]
        if listed and room != SOURCE:
            lines += ["", f"Other rooms use {', '.join(f'`{name}`' for name in listed)}."]
        sections.append("\n".join(lines).strip())
    return "\n\n".join(sections)


def _first_sentence(tree: ast.Module) -> str:
    return " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split()).replace("|", "\\|")


def write_prompt_variables() -> str:
    """Write the variables of prompts, and the templates that may use them."""
    parts = ", ".join(f"`{{{name}}}`" for name in PROMPT_PARTS["system"])
    rows = ["| variable | stands for | in |", "|---|---|---|"]
    for variables, where in ((SHARED, "all"), (PERSONAL, "all"), (MOMENTARY, "`user`, `ask`")):
        rows += [f"| `{{{name}}}` | {meaning} | {where} |" for name, meaning in variables.items()]
    own = ", ".join(f"`{{{name}}}`" for name in PROMPT_PARTS["user"])
    rows += [f"| {parts} | the part of that name | `system` |", f"| {own} | the part of that name | `user` |"]
    return "\n".join([*rows, "| the name of a trait | the trait of the person; empty if they have none | all |"])


def write_metrics() -> str:
    """Write the table of metrics, by the module that holds them."""
    lines = ["| metric | is | of | over rounds |", "|---|---|---|---|"]
    for metric in METRICS.values():
        formula = metric.formula.replace("|", "\\|")
        worlds = ", ".join(metric.worlds) or "all"
        name = f"{metric.name}({metric.about})" if metric.about else metric.name
        lines.append(f"| `{name}` | {formula} | {worlds} | {'yes' if metric.has_series else 'no'} |")
    return "\n".join(lines)


PARTS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "prompt variables": ("prompts.md", write_prompt_variables),
    "scenario fields": ("scenario.md", write_scenario_fields),
    "conditions": ("interventions.md", write_conditions),
    "quality checks": ("quality.md", write_quality_checks),
    "database tables": ("run-directory.md", write_database_tables),
    "room tables": ("run-directory.md", partial(_write_own_tables, Room)),
    "dialogue tables": ("run-directory.md", partial(_write_own_tables, Dialogue)),
    "metrics": ("metrics.md", write_metrics),
    "code map": ("code-map.md", write_code_map),
}


def replace_part(text: str, name: str, content: str) -> str:
    """Replace one generated part of a page."""
    part = re.compile(rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    changed, count = part.subn(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)
    if count != 1:
        raise ValueError(f"a page needs one part called {name!r}, found {count}")
    return changed


def _write_section(model: type[BaseModel]) -> str:
    rows = [_write_row(model, name, field) for name, field in model.model_fields.items()]
    header = "| field | is | default | says |\n|---|---|---|---|"
    return "\n".join([f"### {TITLES[model]}", "", (model.__doc__ or "").partition("\n")[0], "", header, *rows])


def _write_row(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    shape = _describe_type(get_type_hints(model, include_extras=True)[name])
    limits = _describe_limits(field.annotation, field.metadata)
    is_ = f"{shape}, {limits}" if limits and limits not in shape else shape
    default = _write_feed_default(name) if model is FeedSettings else _write_default(field)
    return f"| `{field.alias or name}` | {is_} | {default} | {field.description or ''} |"


def _describe_type(hint: Any) -> str:
    """Describe a type."""
    for known, words in _SHAPES:
        if _is_a(hint, known):
            return words
    if hint in _TYPES:
        return _TYPES[hint]
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return f"[settings](#{_make_anchor(hint)})"
    return _describe_composed(get_origin(hint), get_args(hint))


def _describe_composed(origin: Any, args: tuple[Any, ...]) -> str:
    if origin is Annotated:
        shape, limits = _describe_type(args[0]), _describe_limits(args[0], args[1:])
        return f"{shape}, {limits}" if limits else shape
    if origin in (Union, UnionType):
        return " or ".join(_describe_type(arg) for arg in args if arg is not NoneType)
    if origin is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if origin is tuple and args[-1] is Ellipsis:
        return f"list of: {_describe_type(args[0])}"
    if origin is tuple:
        return f"list of {len(args)}: {'; '.join(dict.fromkeys(map(_describe_type, args)))}"
    if origin is dict:
        return f"mapping: {_describe_type(args[0])} to {_describe_type(args[1])}"
    raise ValueError(f"no words for {origin}{args}")


def _is_a(hint: Any, known: Any) -> bool:
    """Return whether a type is a known shape, perhaps with constraints added."""
    if get_origin(hint) is not Annotated:
        return False
    of, known_of = hint.__metadata__, known.__metadata__
    return bool(hint.__origin__ == known.__origin__ and of[: len(known_of)] == known_of)


def _describe_limits(base: Any, metadata: Any) -> str:
    """Describe the constraints of a type."""
    bounds = {type(item): item for item in _list_constraints(metadata)}
    low, high = bounds.get(Ge), bounds.get(Le)
    words = []
    if isinstance(low, Ge) and isinstance(high, Le):
        words.append(f"{_format_bound(low.ge)} to {_format_bound(high.le)}")
    elif isinstance(low, Ge):
        words.append(f"at least {_format_bound(low.ge)}")
    if isinstance(above := bounds.get(Gt), Gt):
        words.append(f"above {_format_bound(above.gt)}")
    if isinstance(longest := bounds.get(MaxLen), MaxLen):
        words.append(f"at most {longest.max_length} {'characters' if base is str else 'of them'}")
    return ", ".join(words)


def _list_constraints(metadata: Any) -> Iterator[Any]:
    for item in metadata:
        yield from _list_constraints(item.metadata) if isinstance(item, FieldInfo) else [item]


def _format_bound(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _write_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = _to_plain(field.get_default(call_default_factory=True))
    if value is None:
        return "none"
    if value in ({}, []):
        return "empty" if not isinstance(field.default, BaseModel) else "as below"
    return f"`{_write_flow(value)}`"


def _write_feed_default(name: str) -> str:
    """Write the default of a feed setting on each platform."""
    twitter, reddit = (SocialSettings(kind=kind).complete_feed() for kind in ("twitter", "reddit"))
    return f"twitter `{getattr(twitter, name)}`, reddit `{getattr(reddit, name)}`"


def _to_plain(value: Any) -> Any:
    """Turn a value into plain data as in a scenario, without defaults."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, dict):
        return {key: _to_plain(below) for key, below in value.items()}
    if isinstance(value, tuple):
        return [_to_plain(below) for below in value]
    return value


def _write_flow(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M")
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _make_anchor(model: type[BaseModel]) -> str:
    return TITLES[model].lower().replace(" ", "-").replace("'", "")


def _list_models(model: type[BaseModel], found: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """List the model and the models of its fields, each once, outer ones first."""
    if model not in found:
        found.append(model)
        for field in model.model_fields.values():
            for below in _find_models(field.annotation):
                _list_models(below, found)
    return found


def _find_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)


def main() -> None:
    for name, (page, generate) in PARTS.items():
        path = DOCS / page
        path.write_text(replace_part(path.read_text(), name, generate()))
        print(f"wrote {name} in docs/{page}")


if __name__ == "__main__":
    main()
