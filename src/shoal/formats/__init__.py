"""Reads and writes file formats: GraphML and tables."""

from shoal.formats.graphml import DirectedGraph, Edge, read_graphml, write_graphml
from shoal.formats.tables import (
    FORMATS,
    ExportTable,
    Format,
    Row,
    choose_writer,
    decode_json,
    decode_text,
    guess_delimiter,
    quote_formula,
    read_csv_rows,
    read_parquet,
)
