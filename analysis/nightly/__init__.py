"""Jobs that run again and again: which runs are of a job, the verdict on the newest, the trend."""
