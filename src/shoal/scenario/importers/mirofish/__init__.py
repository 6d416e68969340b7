"""Imports a directory that MiroFish has prepared: its settings, its people and its events."""

from shoal.scenario.importers.mirofish.directory import (
    CONFIG,
    REDDIT,
    TWITTER,
    import_mirofish,
    is_mirofish,
    is_run_directory,
    refuse_simulations,
)
