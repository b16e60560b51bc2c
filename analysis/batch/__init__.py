"""Many runs at once: here or on a cluster, as one table, in shards, compared with their peers."""
