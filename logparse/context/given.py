"""What the user gives besides the log, as layers of facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logparse.context.run_context import Fact
from logparse.light_dataclass import dataclass, field


@dataclass(frozen=True)
class Given:
    """What the user gave besides the logs: layers of facts, strongest first, and options of the config file.

    ``weaker`` are facts that hold only where the logs say nothing.
    """

    layers: tuple[Mapping[str, Fact], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None
    weaker: Mapping[str, Fact] = field(default_factory=dict)
