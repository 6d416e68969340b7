from __future__ import annotations

import pytest

from shoal.errors import RunRefused
from shoal.models.local import ModelHeader, ServerSize

GIB = 1 << 30
SMOLLM2 = ModelHeader(size=98_362_432, context=8192, token_bytes=23_040)


def choose(header: ModelHeader, cores: float | None, free: int | None) -> ServerSize:
    return ServerSize.choose(header, "model", cores, free)


def test_every_core_has_a_thread_and_an_answer() -> None:
    size = choose(SMOLLM2, 2, 16 * GIB)

    assert (size.threads, size.slots, size.context) == (2, 2, 6144)
    assert size.prompt_cache_mib == 1024


@pytest.mark.parametrize(("busy", "threads"), [(0.2, 4), (1.0, 3), (2.6, 1), (9.0, 1)])
def test_cores_that_others_use_get_no_thread(busy: float, threads: int) -> None:
    size = ServerSize.choose(SMOLLM2, "model", 4, 16 * GIB, busy)

    assert (size.threads, size.slots) == (threads, 4)


def test_a_context_is_no_longer_than_the_model_was_trained_for() -> None:
    assert choose(ModelHeader(10_000_000, 2048, 1000), 4, 16 * GIB).context == 2048


def test_with_little_memory_there_are_fewer_answers_at_once() -> None:
    size = choose(SMOLLM2, 8, GIB)

    assert 1 <= size.slots < 8
    assert size.slots * size.context * SMOLLM2.token_bytes < GIB


def test_with_less_memory_the_context_is_shorter() -> None:
    size = choose(SMOLLM2, 8, 550 << 20)

    assert size.slots == 1
    assert 2048 <= size.context < 6144


def test_a_model_that_does_not_fit_is_refused_with_figures() -> None:
    with pytest.raises(RunRefused, match=r"model does not fit into the memory: it takes at least 389 MiB.*200 MiB"):
        choose(SMOLLM2, 2, 200 << 20)


def test_an_unknown_machine_gets_one_thread() -> None:
    assert choose(SMOLLM2, None, None).threads == 1


def test_speed_grows_with_cores_and_falls_with_the_size_of_the_model() -> None:
    few, many = (choose(SMOLLM2, cores, 16 * GIB).estimate_speed(SMOLLM2) for cores in (2, 8))
    large = ModelHeader(10 * SMOLLM2.size, 8192, 23_040)
    slow = choose(large, 2, 16 * GIB).estimate_speed(large)

    assert many.read > few.read > slow.read
    assert many.time_of(1000, 100) < few.time_of(1000, 100) < slow.time_of(1000, 100)
