"""HTTP over the runs of a folder: a client here, the server in `api`."""

from shoal.server.client import Client, ServerEvent
