"""Files that logparse writes: whole or not at all, in a folder of results or on an object store."""
