"""Whether logparse is installed well: it reads and computes what is published, on this machine."""
