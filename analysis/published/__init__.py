"""Rates that others published, as data with sources, and which of them a run is compared with."""
