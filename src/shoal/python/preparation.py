"""Scenarios from a requirement in plain words and documents, prepared by a script or a notebook."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from shoal.preparation import (
    PreparationFolder,
    PreparationRequest,
    Prepared,
    check_tables,
    read_documents,
    read_tables,
)
from shoal.preparation import prepare as work_on
from shoal.runs import LimitSettings, RunResources


async def prepare(  # noqa: PLR0913  # each is a choice of the user
    requirement: str,
    documents: Iterable[str | Path] = (),
    *,
    out: str | Path | None = None,
    people: int | None = None,
    rounds: int | None = None,
    worlds: Sequence[str] | None = None,
    topic: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    seed: int | None = None,
    marginals: Iterable[str | Path] = (),
    max_entities: int | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
) -> Prepared:
    """Make a scenario of a requirement and of files of text, Markdown or PDF; `shoal.run(result.scenario)` runs it.

    The same call goes on with work that was interrupted. Without a model, rules read English texts.
    """
    request = await asyncio.to_thread(
        lambda: PreparationRequest.of(
            requirement,
            read_documents(map(Path, documents)),
            people=people,
            rounds=rounds,
            worlds=None if worlds is None else tuple(worlds),
            topic=topic,
            model=model,
            base_url=base_url,
            seed=seed,
            tables=read_tables([*map(Path, marginals)]),
            max_entities=max_entities,
        )
    )
    check_tables(request)
    folder = PreparationFolder(Path(out or request.name))
    folder.begin(request)
    limits = LimitSettings.of({"max_cost": max_cost, "max_calls": max_calls})
    resources = replace(RunResources.of_user(os.environ), limits=limits, name=f"prepare {folder.path.name}")
    return await work_on(folder, resources)
