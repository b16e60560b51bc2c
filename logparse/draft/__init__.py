"""For who writes a format: what one reads of a log, and a draft of one for an unknown log."""
