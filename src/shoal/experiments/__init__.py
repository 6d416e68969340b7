"""Many runs: tiers, arms and seeds; judges, statistics and the report."""
