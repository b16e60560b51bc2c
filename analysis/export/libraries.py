"""The libraries of the targets: extras, imported when an export runs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from logparse.errors import UsageError
from logparse.language import tr

# An export sends nothing but to the server that the user names.
NO_TELEMETRY = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


def library(module: str, extra: str) -> Any:
    """The ``module`` of a library that the ``extra`` of logparse installs. Raises UsageError where it is missing."""
    os.environ.update(NO_TELEMETRY)
    try:
        return import_module(module)
    except ImportError as error:
        problem = tr(
            "--to {target} needs {library}, which is not installed", target=extra, library=module.split(".")[0]
        )
        raise UsageError(problem, remedy=tr("pip install 'logparse[{extra}]'", extra=extra)) from error
