"""Commands to a worker, as files: how they are sent, and how they are answered."""

from shoal.runs.commands.calling import call_worker
from shoal.runs.commands.files import Command, CommandFiles, CommandType
from shoal.runs.commands.serving import RunServing
