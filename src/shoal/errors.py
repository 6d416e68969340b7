"""Every error a user can meet.

ShoalError                 the message says what happened and what to do; never shown as a traceback
├── ScenarioInvalid        the declared input is wrong; carries every problem found
├── ArgumentInvalid        an argument does not fit the run
├── RunRefused             this directory cannot be worked on now
│   ├── RunLocked          another worker is alive on it
│   ├── RunFromNewer       written by a newer version of Shoal
│   ├── RunMissing         there is no run here
│   └── WorkerLost         the worker process ended before it had begun
├── StorageFailed          the disk is full, the directory is not writable, the device failed
│   └── HeadLost           the machine that keeps a run cannot be reached from the node that works on it
├── JournalCorrupt         a line of the journal cannot be read
│   └── JournalChanged     the journal is not what the run wrote
├── ShardLost              a process that held a part of the agents ended without a word
├── Diverged               a repeated run did something else than before
├── RunChanged             a file of a run is not what its history makes it
├── QueryFailed            a question that the run or its database cannot answer
│   └── AgentMissing       there is no such agent in the run
├── JournalIncomplete      a replay needs a reply that the journal does not hold
├── ProviderRefused        every call to the model fails until the user mends something: key, address, credit
├── EveryTurnFailed        not a single decision was made: in the whole run, or in the first turns of a model
├── MeasurementFailed      a variable of the user's own failed; the run can be resumed once it is mended
├── ServerRefused          a server of Shoal refused a request, or does not answer
├── SlotsRefused           the slots that all runs share cannot be used as they are
├── SinkFailed             what copies a run elsewhere could not write; the run itself is unharmed
└── Stopped                the run was asked to stop, and did
    ├── BudgetReached      the next call might cost more than is left; nothing paid for is lost
    │   └── ExperimentBudgetReached  the budget of an experiment or of one of its tiers is used up
    └── ProviderUnavailable  the model's server did not answer for longer than the patience
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from shoal import __version__


class ShoalError(Exception):
    """An error that the user can understand and act upon."""


class ScenarioInvalid(ShoalError):
    """The declared input is wrong. `problems` holds one readable line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ArgumentInvalid(ShoalError):
    """An argument does not fit the run; `argument` is its name."""

    def __init__(self, argument: str, why: str) -> None:
        super().__init__(why)
        self.argument = argument


class RunRefused(ShoalError):
    """This directory cannot be worked on now."""


class RunLocked(RunRefused):
    """Another worker is alive on the directory."""


class RunFromNewer(RunRefused):
    """The directory was written by a newer version of Shoal."""


class RunMissing(RunRefused):
    """There is no run in the directory."""


class WorkerLost(RunRefused):
    """The worker process ended before it had begun; its log says why."""

    def __init__(self, path: Path, last_words: str) -> None:
        super().__init__(f"the worker on {path} ended before it had begun: {last_words}")


class StorageFailed(ShoalError):
    """The disk is full, the directory is not writable, or the device failed."""

    @classmethod
    def writing(cls, path: Path, why: object) -> StorageFailed:
        return cls(f"cannot write {path}: {why}\nFree some space or fix the permissions, then try again.")


class HeadLost(StorageFailed):
    """The machine that keeps the run's directory cannot be reached from the node that works on it."""


class JournalCorrupt(ShoalError):
    """A line of the journal cannot be read."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(
            f"{path}:{line}: this line of the journal cannot be read ({why}).\n"
            "The file was left as it is. Restore the line from a backup, or delete it to ask for that reply again."
        )


class JournalChanged(JournalCorrupt):
    """The journal is not what the run wrote."""

    def __init__(self, path: Path, how: str) -> None:
        ShoalError.__init__(
            self,
            f"{path} is not what the run wrote: {how}.\n"
            "The file was left as it is. Streams and tables do not depend on it. To replay, fork or explain the run, "
            "restore it from a backup.",
        )


class ShardLost(ShoalError):
    """A process that held a part of the agents ended without a word."""


class Diverged(ShoalError):
    """A repeated run did something else than before."""

    def __init__(self, what: str, *, written_by: str) -> None:
        advice = (
            f"This run was written by Shoal {written_by}; this is Shoal {__version__}. "
            "Use the version that wrote it, or `shoal fork` to go on with this one."
        )
        if written_by == __version__:
            advice = "This version wrote it, so something was changed since: a file of the run, or a class of your own."
        super().__init__(f"{what}\n{advice}")


class RunChanged(ShoalError):
    """A file of a run is not what the history from its journal makes it."""

    def __init__(self, path: Path, where: str) -> None:
        super().__init__(
            f"{path} was changed: it differs from the history in the journal {where}.\n"
            "Nothing was written. Restore the file from a backup."
        )


class QueryFailed(ShoalError):
    """A question that the run or its database cannot answer."""


class AgentMissing(QueryFailed):
    """There is no agent of this number in the run."""


class JournalIncomplete(ShoalError):
    """A replay needs a reply that the journal does not hold."""


class ProviderRefused(ShoalError):
    """Every call to the model fails until the user mends something. Going on would only record failures."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}\nNothing is lost. When this is mended, `shoal resume` the run.")


class EveryTurnFailed(ShoalError):
    """Every turn failed, of a run that came to its end or of a model that is asked for the first time.

    Such a history is worthless.
    """

    def __init__(self, turns: int, example: str, model: str | None = None) -> None:
        which = "the only turn of the run" if turns == 1 else f"all {turns:,} turns of the run"
        if model is not None:
            which = f"{model}: each of its first {turns:,} turns"
        super().__init__(
            f"{which} failed, for example {example}\n"
            "The failures are history, and `shoal resume` would repeat them. Mend the cause and run the scenario again."
        )


class MeasurementFailed(ShoalError):
    """A variable of the user's own failed."""


class ServerRefused(ShoalError):
    """A server of Shoal refused a request, or does not answer: then its status is 0."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class SlotsRefused(ShoalError):
    """The slots that all runs share cannot be used: their directory is unsafe, or their broker has another version."""


class SinkFailed(ShoalError):
    """A sink could not take over what was committed. The run itself is unharmed."""


class Stopped(ShoalError):
    """The run was asked to stop, and did."""


class BudgetReached(Stopped):
    """The next call might cost more than is left of the budget."""

    def __init__(self, setting: str, *, limit: float, spent: float, next_call: float) -> None:
        dollars = "$" if setting == "max_cost" else ""
        option = "--" + setting.replace("_", "-")
        super().__init__(
            f"the budget is reached: {dollars}{spent:,.6g} of {setting} {dollars}{limit:,.6g} is spent, and the next "
            f"call may need up to {dollars}{next_call:,.6g}.\n"
            f"Everything that was paid for is kept. `shoal resume` the run with a larger {option} to go on."
        )
        self.setting = setting

    @staticmethod
    def read_setting(text: str) -> str | None:
        """Return the setting that such a message is about; None where it is another message."""
        found = re.match(r"the budget is reached: \S+ of (max_\w+) ", text)
        return found and found[1]


class ExperimentBudgetReached(BudgetReached):
    """The budget of an experiment or of one of its tiers is used up."""

    def __init__(self, spent: Mapping[str, str], left: int) -> None:
        """`spent`: what is used up, such as `tier size` -> which limit of it."""
        which = ", ".join(f"{setting} of {owner}" for owner, setting in spent.items())
        options = " or ".join(f"--{setting}".replace("_", "-") for setting in dict.fromkeys(spent.values()))
        simulations = "1 simulation is" if left == 1 else f"{left:,} simulations are"
        ShoalError.__init__(
            self,
            f"the budget is used up ({which}), and {simulations} left.\n"
            "Everything that was paid for is kept. The same command goes on with a larger budget: in the file, or for "
            f"the whole experiment by {options}.",
        )
        self.setting = next(iter(spent.values()))


class ProviderUnavailable(Stopped):
    """The model's server did not answer for longer than the patience."""

    def __init__(self, why: str, waited: str) -> None:
        super().__init__(
            f"{why}\nThe run waited {waited} for an answer (--patience). Nothing is lost: `shoal resume` the run when "
            "the server is back."
        )
