"""python -m bench [--real [--only TEXT]] [NAME ...]: measures all bars, or those named, and writes bench/results.json.

Limits are measured in virtual time, and with --real over sockets, which takes minutes; --only TEXT chooses the settings
whose names contain it. With --real, a language model on this machine is measured, too. Each figure is printed and kept
as soon as it is known.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import bars as social
from bench import clusters, experiments, language, limits, pages, real, server, sinks, slots
from bench.bars import Bar, Measurement, measure
from bench.coverage import coverage
from bench.demographics import marginals
from bench.dialogues import dialogues
from bench.hostile import hostile_replies
from bench.imports import importing
from bench.local_model import local_model, topics
from bench.recording import recording
from bench.rooms import room_ageing, room_relations
from bench.scripts import short_calls
from bench.shards import shards
from bench.web import web_open

_PEOPLE = (importing, marginals)
_OTHERS = (recording, room_ageing, room_relations, dialogues, *_PEOPLE, short_calls, hostile_replies, coverage)
_RUNS = (*sinks.ALL, *experiments.ALL, *clusters.ALL, shards)
ALL = (*social.ALL, *_OTHERS, *language.ALL, *slots.ALL, *server.ALL, web_open, *pages.ALL, *_RUNS, limits.limits)
RESULTS = Path(__file__).parent / "results.json"


def main(arguments: list[str]) -> int:
    chosen = _parse(arguments)
    known: dict[str, Measurement] = {measurement.__name__: measurement for measurement in ALL}
    if chosen.real:
        known |= {"limits": partial(real.limits, chosen.only), "local_model": local_model, "topics": topics}
    unknown = [name for name in chosen.names if name not in known]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    bars: list[Bar] = []
    for bar in measure([known[name] for name in chosen.names or known]):
        print(_line(bar), flush=True)
        bars.append(bar)
        _write(bars, replace=False)
    if chosen.real and not chosen.names and not chosen.only:
        _write(bars, replace=True)
    return 0 if all(bar.holds for bar in bars) else 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_intermixed_args(arguments)


def _line(bar: Bar) -> str:
    sign = "at least" if bar.at_least else "at most"
    verdict = "holds" if bar.holds else "MISSED"
    return f"{verdict:6}  {bar.name:58} {bar.value:12,.2f} {bar.unit:4} ({sign} {bar.bar:,g})  {bar.baseline}"


def _write(bars: list[Bar], *, replace: bool) -> None:
    """Bars measured now replace those of the same name; everything measured, also in real time, replaces all."""
    before = [] if replace or not RESULTS.exists() else json.loads(RESULTS.read_text())["bars"]
    names = {bar.name for bar in bars}
    kept = [bar for bar in before if bar["name"] not in names]
    content = {
        "machine": {"python": platform.python_version(), "system": platform.system()},
        "bars": kept + [{**asdict(bar), "holds": bar.holds} for bar in bars],
    }
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
