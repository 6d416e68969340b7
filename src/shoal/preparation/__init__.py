"""Makes a scenario of a requirement in plain words and of documents: people, relations, posts and settings."""

from shoal.preparation.folder import STAGE_NAMES, PreparationFolder, PreparationState, PreparationStatus
from shoal.preparation.reading.documents import SourceDocument, name_apart, parse_document, read_documents
from shoal.preparation.request import PreparationRequest, read_tables
from shoal.preparation.results import describe_preparation_request, describe_result
from shoal.preparation.shelf import (
    PreparationShelf,
    describe_config,
    describe_prepared_simulation,
    describe_profiles,
    describe_task,
)
from shoal.preparation.work import Prepared, check_tables, prepare
