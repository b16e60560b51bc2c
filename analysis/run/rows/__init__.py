"""Which rows are of the run, and which of them count."""
