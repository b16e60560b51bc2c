"""Which ranks may have stopped or slowed the others, by the numbers that a log holds of single ranks."""
