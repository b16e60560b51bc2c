"""Rows of one run to its answers: restarts, duplicates, window, throughput, rates, time breakdown, findings."""
