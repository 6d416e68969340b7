"""What conditions can know about a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from shoal.engine.facts import Facts
from shoal.types import Event


def event(name: str, kind: str = "CREATE_POST", success: bool = True, **args: object) -> Event:
    return Event(1, 0, name, kind, dict(args), success, None if success else "refused", "", "")


def after(*rounds: Sequence[Event], words: Sequence[str] = ()) -> Facts:
    """The facts after these rounds, the first of which is round 0."""
    facts = Facts()
    facts.track_words(words)
    for round, events in enumerate(rounds):
        facts.add_round(round, round / 2, events)
    return facts


def test_before_anything_has_happened_everything_is_nothing() -> None:
    facts = Facts()
    assert (facts.round, facts.hours, facts.actions, facts.total_actions, facts.rejected) == (0, 0.0, 0, 0, 0)
    assert (facts.count("X"), facts.total("X"), facts.by("Ada"), facts.quiet("Ada"), facts.said("x")) == (0,) * 5
    assert (facts.mean_opinion, facts.opinion_spread) == (0.0, 0.0)


def test_the_round_is_the_last_one_that_is_over() -> None:
    facts = after([], [], [])
    assert (facts.round, facts.hours) == (2, 1.0)


def test_actions_are_counted_in_the_last_round_and_in_all() -> None:
    facts = after([], [event("Ada"), event("Ben", "LIKE_POST")], [event("Ada")])
    assert (facts.actions, facts.total_actions) == (1, 3)
    assert (facts.count("CREATE_POST"), facts.total("CREATE_POST")) == (1, 2)
    assert (facts.count("LIKE_POST"), facts.total("LIKE_POST")) == (0, 1)


def test_what_was_refused_is_not_done() -> None:
    facts = after([], [event("Ada", success=False)], [event("Ada"), event("Ben", success=False)])
    assert (facts.actions, facts.rejected, facts.total_rejected) == (1, 1, 2)
    assert (facts.total("CREATE_POST"), facts.by("Ben")) == (1, 0)


def test_a_turn_without_a_decision_is_an_error_or_a_timeout_and_not_a_refusal() -> None:
    facts = Facts()
    lost = [event(name, "DO_NOTHING", success=False) for name in ("Ada", "Ben", "Cid")]
    facts.add_round(1, 1.0, [*lost, event("Dan", success=False)], Counter(timeout=1, error=1, unusable=1))
    assert (facts.errors, facts.timeouts, facts.rejected) == (2, 1, 1)
    facts.add_round(2, 2.0, [])
    assert (facts.errors, facts.timeouts, facts.rejected) == (0, 0, 0)
    assert (facts.total_errors, facts.total_timeouts, facts.total_rejected) == (2, 1, 1)


def test_doing_nothing_is_no_action() -> None:
    facts = after([], [event("Ada", "DO_NOTHING")])
    assert (facts.actions, facts.total_actions, facts.by("Ada"), facts.quiet("Ada")) == (0, 0, 0, 1)


def test_an_agent_is_quiet_since_its_last_action() -> None:
    facts = after([], [event("Ada")], [], [event("Ben")])
    assert [facts.quiet(name) for name in ("Ada", "Ben", "Cid")] == [2, 0, 3]
    assert [facts.by(name) for name in ("Ada", "Ben", "Cid")] == [1, 1, 0]


def test_words_are_found_in_what_was_written_in_any_case_once_per_text() -> None:
    facts = after(
        [],
        [event("Ada", content="A bridge is a BRIDGE."), event("Ben", "QUOTE_POST", quote_content="which bridge?")],
        [event("Cid", "SEND_TO_GROUP", message="Die Straße zur Bridge"), event("Dan", content="nothing")],
        words=["bridge", "STRASSE"],
    )
    assert (facts.said("Bridge"), facts.total_said("Bridge"), facts.total_said("BRIDGE")) == (1, 3, 3)
    assert (facts.said("strasse"), facts.total_said("STRASSE")) == (1, 1)


def test_what_a_text_refers_to_and_what_was_refused_was_not_said() -> None:
    facts = after([event("Ada", original_content="bridge"), event("Ben", success=False, content="bridge")])
    assert facts.said("bridge") == 0


def test_words_that_are_not_tracked_are_not_counted() -> None:
    assert after([event("Ada", content="bridge")]).total_said("bridge") == 0


@pytest.mark.parametrize(
    ("opinions", "mean", "spread"),
    [((), 0.0, 0.0), ((0.5,), 0.5, 0.0), ((1.0, -1.0), 0.0, 1.0), ([0.2, 0.2, 0.8], 0.4, 0.282843)],
)
def test_opinions_are_read_when_they_are_asked_for(opinions: Sequence[float], mean: float, spread: float) -> None:
    facts = Facts()
    facts.set_opinions(lambda: opinions)
    assert facts.mean_opinion == pytest.approx(mean)
    assert facts.opinion_spread == pytest.approx(spread, abs=1e-6)
