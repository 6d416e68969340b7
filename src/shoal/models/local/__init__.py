"""Models that run on this machine: files of them, the server that all runs share, and a table of word vectors."""

from shoal.models.local.catalog import CATALOG, DEFAULT_MODEL, LOCAL, TABLE, KnownModel, is_local, is_table
from shoal.models.local.download import download_model
from shoal.models.local.gguf import ModelHeader
from shoal.models.local.server import ServedModel, check_extra, measure_speed, open_server
from shoal.models.local.sizing import ModelSpeed, ServerSize
from shoal.models.local.store import ModelStore
from shoal.models.local.vector_file import VectorFile
from shoal.models.local.word_table import Vectors, WordTable, compare_texts, find_table
