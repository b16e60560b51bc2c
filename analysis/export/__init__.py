"""Where results go: a run to each target of ``export``, and news to a chat or a command."""

# Each of these has a file of its name.
TRACKERS = ("tensorboard", "openmetrics", "mlflow", "swanlab")
TABLES = ("csv", "jsonl")
TARGETS = (*TRACKERS, *TABLES)
