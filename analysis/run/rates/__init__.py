"""Rates of rows and of the run, with the batches and times that they are made of."""
