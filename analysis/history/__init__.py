"""Recorded runs: immutable Parquet per run, on a folder or an object store, readable for ever."""
