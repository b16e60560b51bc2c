"""The libraries of the targets: extras, imported when an export runs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from logparse.extras import missing_extra

# An export sends nothing but to the server that the user names.
NO_TELEMETRY = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


def library(module: str, extra: str) -> Any:
    """The ``module`` of a library that the ``extra`` of logparse installs. Raises UsageError where it is missing."""
    os.environ.update(NO_TELEMETRY)
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(f"--to {extra}", module.split(".")[0], extra) from error
