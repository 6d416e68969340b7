"""Reads and writes file formats: GraphML, Parquet, tables."""

from shoal.formats.graphml import DirectedGraph, Edge, read_graphml, write_graphml
from shoal.formats.parquet import read_parquet
from shoal.formats.tables import (
    FORMATS,
    ExportTable,
    Format,
    Row,
    choose_writer,
    decode_json,
    decode_text,
    guess_delimiter,
    read_csv_rows,
)

__all__ = [
    # graphml
    "DirectedGraph",
    "Edge",
    "read_graphml",
    "write_graphml",
    # parquet
    "read_parquet",
    # tables
    "ExportTable",
    "FORMATS",
    "Format",
    "Row",
    "choose_writer",
    "decode_json",
    "decode_text",
    "guess_delimiter",
    "read_csv_rows",
]
