"""The folder of an experiment: its frozen design, how far it is, and what differs where a design was changed.

`experiment.json` is written before anything runs, `experiment_state.json` while it runs and at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError

import shoal
from shoal.errors import RunFromNewer, RunMissing, RunRefused, StorageFailed
from shoal.experiments.design import Design, Experiment, ExperimentSettings
from shoal.experiments.stopping import ArmStop
from shoal.runs import freeze_scenario, replace_json, wall_clock
from shoal.text import quote_path

#: Where experiments go, relative to the working directory.
RESULTS_FOLDER = Path("results")
DESIGN = "experiment.json"
STATE = "experiment_state.json"
#: Grows when an older version could not read what this one writes.
FORMAT = 1
_MAX_SHOWN = 8
#: In place of a value that one design does not have, and of the content of a tier or an arm.
_ABSENT, _WHOLE = object(), object()


class DesignChange(msgspec.Struct, frozen=True):
    """A change of the design that was accepted after runs had ended."""

    at: str
    #: Runs that had ended before.
    runs: int
    differences: list[str]


class TierRecord(msgspec.Struct, frozen=True):
    """A tier with every arm and seed of it written out."""

    name: str
    control: str | None
    inherits: dict[str, Any] | None
    seeds: tuple[int, ...]
    #: Arm -> what it changes, before anything is inherited.
    arms: dict[str, dict[str, Any]]


class DesignRecord(msgspec.Struct, frozen=True):
    """The content of `experiment.json`."""

    format: int
    shoal_version: str
    name: str
    #: The scenario's file as it was named; None where the experiment was given in plain values.
    file: str | None
    made_at: str
    first_seed: int
    seeds: tuple[int, ...]
    tiers: tuple[TierRecord, ...]
    #: The section `experiment` as it was declared.
    settings: dict[str, Any]
    #: The scenario that arms change. Files in it are named by their content.
    base: dict[str, Any]
    #: What was changed after it had begun.
    changes: tuple[DesignChange, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment) -> DesignRecord:
        tiers = tuple(
            TierRecord(
                tier.name,
                tier.control,
                None if tier.inherits is None else tier.inherits.model_dump(exclude_none=True),
                experiment.list_seeds(tier),
                experiment.arms[tier.name],
            )
            for tier in experiment.tiers
        )
        return cls(
            format=FORMAT,
            shoal_version=shoal.__version__,
            name=experiment.name,
            file=None if experiment.file is None else str(experiment.file),
            made_at=wall_clock(),
            first_seed=experiment.first_seed,
            seeds=experiment.seeds,
            tiers=tiers,
            settings=experiment.settings.model_dump(mode="json", exclude_defaults=True),
            base=freeze_scenario(experiment.base),
        )

    def list_differences(self, other: DesignRecord) -> list[str]:
        """Say what another design changes. Budgets do not belong to a design: they may be larger the next time."""
        before, after = (dict(each._list_values()) for each in (self, other))
        found: list[str] = []
        #: Tiers and arms that only one of them has. What belongs to these needs no separate line.
        whole: list[str] = []
        for path in dict.fromkeys([*before, *after]):
            if any(path.startswith(f"{each}, ") for each in whole):
                continue
            old, new = before.get(path, _ABSENT), after.get(path, _ABSENT)
            if _WHOLE in (old, new) and old is not new:
                whole.append(path)
                found.append(f"{path} is {'new' if old is _ABSENT else 'gone'}")
            elif old is _ABSENT or new is _ABSENT:
                known = new if old is _ABSENT else old
                found.append(f"{path}: {'now' if old is _ABSENT else 'no more'} {_show(known)}")
            elif old != new:
                found.append(f"{path}: was {_show(old)}, is {_show(new)} now")
        return found

    def _list_values(self) -> Iterator[tuple[str, Any]]:
        settings = {name: value for name, value in self.settings.items() if name not in ("budget", "tiers", "seeds")}
        yield from _flatten(settings, "")
        for tier in self.settings["tiers"]:
            yield f"tier {tier['name']}", _WHOLE
            written_out = ("budget", "name", "arms", "grid", "sweep")
            more = {name: value for name, value in tier.items() if name not in written_out}
            yield from _flatten(more, f"tier {tier['name']}, ")
        for record in self.tiers:
            yield f"tier {record.name}, seeds", list(record.seeds)
            for arm, changes in record.arms.items():
                yield f"tier {record.name}, arm {arm}", _WHOLE
                yield from _flatten(changes, f"tier {record.name}, arm {arm}, ")
        yield from _flatten(self.base, "")


class ExperimentState(msgspec.Struct):
    """The content of `experiment_state.json`: how far an experiment is."""

    #: `running`, `completed` or `stopped`. One that says `running` without a process was killed.
    status: str = "running"
    #: Why it stopped.
    reason: str | None = None
    #: Runs that count, and how many of them have ended.
    runs: int = 0
    ended: int = 0
    failed: int = 0
    #: Dollars of all runs, also of those that do not count; None where a price is not known.
    cost: float | None = 0.0
    calls: int = 0
    #: Hours of work: of tiers, and of the whole under an empty name.
    hours: dict[str, float] = {}
    #: Tier -> the arm that it starts from, as TIER/ARM.
    starts: dict[str, str] = {}
    stops: list[ArmStop] = []
    #: Tier -> why it is not run.
    skipped: dict[str, str] = {}
    #: Tier -> which limit of its budget, or of the experiment's, is used up.
    spent: dict[str, str] = {}
    #: Runs that were under way when their arm was stopped, and do not count.
    uncounted: int = 0
    #: What the user should know, the latest last.
    notes: list[str] = []
    #: The command that goes on with it.
    command: str = ""
    updated_at: str = ""


def freeze_design(experiment: Experiment, folder: Path, *, accept_changes: bool = False, ended: int = 0) -> None:
    """Write the design into a new folder. RunRefused where the folder has another design, unless it is accepted."""
    new = DesignRecord.of(experiment)
    if not (folder / DESIGN).exists():
        replace_json(folder / DESIGN, new)
        return
    known = read_design(folder)
    differences = known.list_differences(new)
    if not differences:
        if known.settings != new.settings:
            replace_json(folder / DESIGN, msgspec.structs.replace(known, settings=new.settings))
        return
    if not accept_changes:
        raise RunRefused(describe_differences(folder, differences))
    change = DesignChange(wall_clock(), ended, differences)
    replace_json(folder / DESIGN, msgspec.structs.replace(new, changes=(*known.changes, change)))


def check_design(experiment: Experiment, folder: Path, *, accept_changes: bool) -> None:
    """Refuse a design that differs from that of the folder, before anything is done."""
    if (folder / DESIGN).exists() and not accept_changes:
        differences = read_design(folder).list_differences(DesignRecord.of(experiment))
        if differences:
            raise RunRefused(describe_differences(folder, differences))


def describe_differences(folder: Path, differences: list[str]) -> str:
    left = len(differences) - _MAX_SHOWN
    shown = [f"  {each}" for each in differences[:_MAX_SHOWN]] + ([f"  and {left} more"] if left > 0 else [])
    return "\n".join(
        [
            f"{quote_path(folder)} holds this experiment with another design:",
            *shown,
            "Choose another folder with --out: replies that were paid for are not paid for again. Or go on in this one "
            "with --accept-changes: runs that both designs have are kept, and the report says what was changed when.",
        ]
    )


def read_design(folder: Path) -> DesignRecord:
    """Read the frozen design; RunMissing where there is no experiment in the folder."""
    path = folder / DESIGN
    try:
        content = path.read_bytes()
        format = msgspec.json.decode(content, type=dict[str, Any]).get("format", 0)
        if isinstance(format, int) and format > FORMAT:
            raise RunFromNewer(f"{folder} was written by a newer version of Shoal; use that one")
        return msgspec.json.decode(content, type=DesignRecord)
    except (FileNotFoundError, NotADirectoryError):
        raise RunMissing(f"there is no experiment in {folder}: no {DESIGN}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise StorageFailed(f"cannot read {path}: {error}") from error


def open_design(folder: Path) -> Design:
    """Return the design of a folder, with which its results can be judged and compared."""
    record = read_design(folder)
    try:
        settings = ExperimentSettings.model_validate(record.settings)
    except ValidationError as error:
        raise StorageFailed(f"{folder / DESIGN} cannot be read: {error}") from error
    return Design(record.name, settings, record.first_seed)


def read_experiment_state(folder: Path) -> ExperimentState:
    try:
        return msgspec.json.decode((folder / STATE).read_bytes(), type=ExperimentState)
    except FileNotFoundError:
        return ExperimentState()
    except (OSError, msgspec.MsgspecError) as error:
        raise StorageFailed(f"cannot read {folder / STATE}: {error}; remove it, and only times are lost") from error


def is_experiment(folder: Path) -> bool:
    return (folder / DESIGN).is_file()


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every plain value with its path."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flatten(each, f"{path}{'.' if path and not path.endswith(', ') else ''}{key}")
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for number, each in enumerate(value):
            yield from _flatten(each, f"{path}.{number}")
    else:
        yield path, value


def _show(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
