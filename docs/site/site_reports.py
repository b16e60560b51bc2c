"""The reports of the gallery: made by the commands that docs/gallery.md shows, and shown below them."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner

from analysis.cli import build_app
from analysis.project.choose_language import choose_language
from logparse.language import speaking

ROOT = Path(__file__).parents[2]
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDER = re.compile(r"-o out/gallery/([\w-]+)")


def page_with_reports(page: str) -> str:
    """The page with a view of each report below the commands that make it."""
    return _COMMANDS.sub(lambda commands: f"{commands[0]}\n\n{_view(commands[1])}", page)


def _view(commands: str) -> str:
    """The report in a frame, which leads to it, and a link."""
    (name,) = _FOLDER.findall(commands)
    path = f"gallery/{name}/{_first_page(commands)}"
    frame = f'<iframe src="{path}" title="{name}" loading="lazy" tabindex="-1"></iframe>'
    return f'<a class="report" href="{path}">{frame}</a>\n\n[Open this report]({path})'


def _first_page(commands: str) -> str:
    return "index.html" if "analyze --each" in commands else "report.html"


def write_reports(page: str, out: Path) -> None:
    """Run the commands of the page, and move the folders that they write to ``out``.

    Raises RuntimeError with what a command printed if it fails.
    """
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("fixtures").symlink_to(ROOT / "fixtures")
        for commands in _COMMANDS.findall(page):
            for command in commands.replace("\\\n", "").splitlines():
                _run(*shlex.split(command)[1:])
        shutil.move("out/gallery", out)


def _run(*words: str) -> None:
    """Run a command in this process, as all of them import the same."""
    with speaking(choose_language(words, {}) or "en"):
        done = CliRunner().invoke(build_app(), words)
    if done.exit_code:
        raise RuntimeError(f"logparse {shlex.join(words)}: {done.output}{done.exception}")
