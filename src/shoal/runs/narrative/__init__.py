"""The report of a run: what happened in it, in sentences with their evidence, as Markdown and as a page."""

from shoal.runs.narrative.narrative import NarrativeSection, NarrativeStatement, RunNarrative, tell_run
from shoal.runs.narrative.rendering import number_evidence, render_html, render_markdown
from shoal.runs.narrative.writer import write_narrative
