"""Statistics over runs that several rooms use."""
