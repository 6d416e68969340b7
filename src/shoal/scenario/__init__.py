"""The declared input, its validation, and the one place that builds live objects from it."""

from shoal.scenario.build import (
    Simulation,
    Sources,
    build,
    check_classes,
    extend_simulation,
    find_variables,
    list_own_code,
    reschedule_events,
)
from shoal.scenario.declared.events import DeclaredEvent, GiveBackEvent, SeatEvent, SkipEvent, parse_minutes
from shoal.scenario.declared.kinds import OwnWorldSettings, name_class
from shoal.scenario.declared.population import FileEntry, MarginalsEntry, PersonEntry, count_people, number_own_names
from shoal.scenario.declared.sinks import SinkSettings
from shoal.scenario.document import Document, read_document, set_number_in_file
from shoal.scenario.expressions import COMPARISONS, ExpressionCompiler, UnreadableExpression, parse_expression
from shoal.scenario.happenings import build_clock, count_by_round, parse_event
from shoal.scenario.importers.detect import ImportOptions, import_path
from shoal.scenario.importers.fields import FieldUse, ImportResult
from shoal.scenario.importers.mirofish import import_mirofish, is_mirofish
from shoal.scenario.importers.people_file import (
    PeopleTable,
    build_people_table,
    list_files,
    read_content,
    read_people,
    read_records,
)
from shoal.scenario.importers.tables import RecordTable, read_json_table
from shoal.scenario.importers.tinytroupe import PERSONA, SAVED, build_spec_table, is_spec, merge_fragments, redefine
from shoal.scenario.loading import (
    ExampleScenario,
    TextProblem,
    assign_model,
    check_text,
    lengthen,
    list_examples,
    load,
    load_events,
    override,
    parse,
    read_starter,
    read_text,
    validate,
    validate_events,
)
from shoal.scenario.prompts import describe_notes, describe_shortened_personas, describe_unheeded
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.profiles import FEMALE as FEMALE_NAMES
from shoal.scenario.sampling.profiles import MALE as MALE_NAMES
from shoal.scenario.sampling.profiles import choose_article, word_opinion
from shoal.scenario.sampling.sampler import EVERYDAY_INTERESTS, sample
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.scenario.validation.problems import Problem, describe_mismatch, read_problems
from shoal.scenario.validation.report import check
