"""Reads and writes file formats: GraphML, tables and SVG."""

from shoal.formats.graphml import DirectedGraph, Edge, read_graphml, write_graphml
from shoal.formats.svg import (
    Axis,
    Drawing,
    choose_step,
    draw_circle,
    draw_line,
    draw_text,
    join_points,
    spread_labels,
    wrap_svg,
)
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
