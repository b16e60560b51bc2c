"""Compile the tables of both packages where the wheel is built or an editable install is made."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileTables(BuildHookInterface[Any]):
    """The hook that hatchling finds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write each table next to its TOML, and add it to the wheel, though git ignores it."""
        sys.path.insert(0, self.root)
        from logparse.package_tables import COMPILED, compile_table

        for package in ("logparse", "analysis"):
            for path in Path(self.root, package).rglob("*.toml"):
                compile_table(path)
        build_data["artifacts"].append(f"*{COMPILED}")
