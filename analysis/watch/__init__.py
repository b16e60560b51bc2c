"""A running job: files that grow, what is known of them at each time, and alarms."""
