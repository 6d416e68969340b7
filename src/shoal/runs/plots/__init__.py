"""Pictures of runs: figures over rounds, distributions of opinions, cascades and networks."""

from shoal.runs.plots.colours import colour_of
from shoal.runs.plots.page import PlotPage, plot_runs
