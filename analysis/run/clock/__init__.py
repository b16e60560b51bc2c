"""The clock of a run: its repair, its pauses, its stalls and its gaps."""
