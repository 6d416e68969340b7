"""Judges: say whether a run passes, by its metrics, its agents, a model, or a function of the user's own."""

from shoal.experiments.judges.agreement import VoteAgreement, measure_agreement, measure_votes
from shoal.experiments.judges.base import JudgedRun
from shoal.experiments.judges.judging import Judging
from shoal.experiments.judges.models import JUDGING
from shoal.experiments.judges.reading import JudgingReader, load_judging
