"""The bar for populations grown from demographic tables: how far people are from them at most."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.bars import Bar
from shoal.scenario.loading import validate
from shoal.scenario.sampling.sampler import measure_group_fit

_PEOPLE = 10_000
_TRIES = 20
_VALUES = {
    "age": ("0-17", "18-29", "30-44", "45-64", "65-79", "80+"),
    "gender": ("female", "male"),
    "region": tuple(f"region {n}" for n in range(16)),
    "income": tuple(f"income {n}" for n in range(5)),
    "education": tuple(f"education {n}" for n in range(8)),
}
_JOINED = ((0, 1), (1, 2), (2, 3), (0, 4), (3, 4), (0, 2))


def marginals(folder: Path) -> list[Bar]:
    """Six joint tables over five attributes of 7,680 combinations, in a loop; the worst cell of all tries counts."""
    worst, seconds = 0.0, 0.0
    shape = tuple(map(len, _VALUES.values()))
    for seed in range(_TRIES):
        # Uneven shares, as those of real tables are: of many combinations there is hardly anybody.
        shares = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.2)).reshape(shape)
        paths = [_write(folder / f"{seed}-{n}.csv", shares, axes) for n, axes in enumerate(_JOINED)]
        began = time.process_time()
        scenario = validate({"population": {"marginals": paths, "count": _PEOPLE}, "seed": seed})
        worst = max(worst, *(fit.largest for fit in measure_group_fit(scenario, 0)))
        seconds = max(seconds, time.process_time() - began)
    told = f"{_PEOPLE:,} people, {_TRIES} sets of {len(_JOINED)} joint tables; at most {seconds:.2f} s of CPU each"
    return [Bar("largest deviation from demographic tables, in points", worst, "pp", 1.0, False, told)]


def _write(path: Path, shares: NDArray[np.float64], axes: tuple[int, ...]) -> str:
    names = list(_VALUES)
    table = shares.sum(axis=tuple(axis for axis in range(shares.ndim) if axis not in axes))
    lines = [",".join([*(names[axis] for axis in axes), "count"])]
    for cell, share in np.ndenumerate(table):
        values = (_VALUES[names[axis]][code] for axis, code in zip(axes, cell, strict=True))
        lines.append(",".join([*values, str(round(float(share) * 1e7))]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
