"""The commands that read runs, for questions and for other tools: diff, explain, export, graph, plot, report."""
