"""Reads and writes file formats: GraphML, Parquet, tables."""
