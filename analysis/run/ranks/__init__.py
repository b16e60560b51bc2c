"""The ranks of a run, next to each other."""
