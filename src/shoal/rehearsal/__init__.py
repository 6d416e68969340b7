"""A server that speaks as a provider of language models does, with the limits and faults one chooses."""

from shoal.rehearsal.embeddings import PrefixCache, embed_text
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import REFUSABLE, Headers, PlannedOutage, RehearsalSettings, SettingChange
from shoal.rehearsal.stats import Stats
