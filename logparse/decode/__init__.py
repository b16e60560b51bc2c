"""Bytes to frames: which lines matter, which format they are of, what each says."""
