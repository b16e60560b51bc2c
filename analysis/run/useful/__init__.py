"""Where the time went, how much of it was useful, and how much is left."""
