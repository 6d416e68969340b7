"""Published results as checks of minds: does a population of this mind behave like published ones do?"""

from shoal.experiments.checks.base import CheckResult, CheckVerdict, ValidationCheck
from shoal.experiments.checks.suite import ALL_CHECKS, choose_checks, run_checks
