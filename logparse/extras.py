"""Libraries that only some commands need: pip installs each with an extra of logparse."""

from __future__ import annotations

from logparse.errors import UsageError
from logparse.language import tr


def missing_extra(user: str, library: str, extra: str) -> UsageError:
    """The error for a ``library`` that is missing; ``user`` is what needs it, such as ``--engine ray``."""
    problem = tr("{user} needs {library}, which is not installed", user=user, library=library)
    return UsageError(problem, remedy=tr("pip install 'logparse[{extra}]'", extra=extra))
