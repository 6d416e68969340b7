"""Starts workers, follows them and ends them: where runs work."""

from shoal.runs.launchers.base import Launcher, WorkerMode, WorkerProcess, find_worker
from shoal.runs.launchers.control import make_room, restart_run, revive_worker, start_run, stop_run
from shoal.runs.launchers.fork import ForkLauncher
from shoal.runs.launchers.local import LocalLauncher
from shoal.runs.launchers.opening import LOCAL, fork_early, open_launcher, read_place
