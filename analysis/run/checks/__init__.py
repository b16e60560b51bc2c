"""A run against itself, its plan, published rates and targets."""
