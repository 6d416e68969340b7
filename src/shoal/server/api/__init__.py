"""The server: starts and stops runs, shows what happens in them, asks their agents. Keeps no state."""

from shoal.server.api.bundles.offline import bundle_folder
from shoal.server.api.bundles.writer import BundleNote
from shoal.server.api.serving import serve
from shoal.server.api.settings import DEFAULT_PORT, ServerSettings
