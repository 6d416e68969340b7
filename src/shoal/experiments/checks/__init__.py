"""Published results as checks of minds: does a population of this mind behave like published ones do?"""

from shoal.experiments.checks.base import ValidationCheck, CheckResult, CheckVerdict
from shoal.experiments.checks.suite import ALL_CHECKS, choose_checks, run_checks
