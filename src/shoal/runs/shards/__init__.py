"""One simulation over several processes: shards hold the minds of agents, and the world stays where it is."""

from shoal.runs.shards.pool import ShardPool, count_shards, open_shards
