"""Two sides compared: may they be, did the metrics change, and which change is the cause."""
