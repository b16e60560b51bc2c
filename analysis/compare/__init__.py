"""Two sides, or a series of runs: comparable or not, changed or not, and the verdict for other tools."""
