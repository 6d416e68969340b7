"""Advances worlds round by round: observe, decide, apply, commit."""

from shoal.engine.decisions import Decider, DecisionLimits
from shoal.engine.engine import Engine, Gate, TurnCount
from shoal.engine.facts import Facts
from shoal.engine.functions import InterventionFailed, OwnFunction, UnusableResult
from shoal.engine.interventions import FAILURE, INTERVENTION, RULE_CHARS, ClaimCheck, Rule, Schedule
from shoal.engine.metrics import DecisionTimings, Metrics, Step
from shoal.engine.population import (
    STATE_INDEXES,
    STATE_TABLES,
    TOPIC,
    PopulationState,
    StateRecorder,
    Variable,
    count_opinions,
    measure_polarisation,
)
from shoal.engine.record import Ledger, RoundRecord, Tally
from shoal.engine.seats import DecidedBy, SeatAnswer, Seats, SeatTerms, WaitingTurn
