"""Frames in, numbers and pictures out. Nothing here reads log text."""
