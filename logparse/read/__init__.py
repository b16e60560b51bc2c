"""Files, folders, streams to columns: which bytes matter, which format they are, what each line says."""
