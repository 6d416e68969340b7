"""Seats in a run: what the person at the keyboard sees and may do, and whose browser holds a seat."""

from shoal.runs.seats.attendance import SeatAttendance
from shoal.runs.seats.forms import AnswerProblem, SeatAction, SeatChoice, SeatField, TurnForm
from shoal.runs.seats.taking import (
    SeatView,
    give_seat_back_before_start,
    read_seats,
    read_terms,
    take_seat_before_start,
)
