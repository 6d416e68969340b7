"""Reads what people bring from elsewhere: files of personas, follow graphs, and the input of other systems."""
