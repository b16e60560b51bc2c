"""One file per command: it reads options, calls, prints."""
