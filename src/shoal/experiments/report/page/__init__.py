"""The report as one page that needs nothing else."""

from shoal.experiments.report.page.document import write_page
from shoal.experiments.report.page.people import EXPLANATION, list_people
