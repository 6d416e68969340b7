"""The server: starts and stops runs, shows what happens in them, asks their agents. Keeps no state."""

from shoal.server.api.bundling import BundleNote, write_bundle
from shoal.server.api.serving import serve
from shoal.server.api.settings import DEFAULT_PORT, ServerSettings
