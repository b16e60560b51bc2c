"""One run: from frames and facts to rates, goodput, overheads, targets and notes."""
