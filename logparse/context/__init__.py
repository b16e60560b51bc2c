"""What the numbers mean: the framework and its version, and every fact of the run with its origin."""
