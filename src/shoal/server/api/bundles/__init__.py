"""Runs and experiments as folders of static files, which any browser opens without Shoal."""

from shoal.server.api.bundles.writer import BundleNote, write_bundle
