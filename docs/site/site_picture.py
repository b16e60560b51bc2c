"""The picture of docs/first-screen.md: the real first screen of a fixture, whose parts are marked and explained.

``python docs/site/site_picture.py`` draws it anew for each language.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from rich.cells import cell_len

ROOT = Path(__file__).parents[2]
PICTURES = {"en": ROOT / "docs/first-screen.svg", "zh": ROOT / "docs/zh/first-screen.svg"}
COMMAND = "logparse analyze run.log --hw 910b3"
LOG = "fixtures/megatron/core-v0.12-llama2-7b/run.log"
COLUMNS = 80
TITLES = {"en": "The first screen of logparse analyze", "zh": "logparse analyze 的第一屏"}

# Pixels: a character, a line, the margin, a line of the legend.
CHARACTER, LINE, MARGIN, LEGEND = 7.8, 22, 20, 26
WIDTH = COLUMNS * CHARACTER + 2 * MARGIN
STYLE = """
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, "Noto Sans Mono CJK SC", monospace; fill: #e4e7eb }
.command { fill: #8fd3a8 } .legend { font-family: system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif }
.part { fill: #f5c54226; stroke: #f5c542 } circle { fill: #f5c542 }
.number { font: bold 10px sans-serif; fill: #1b1f24; text-anchor: middle }
"""


def arguments(language: str) -> list[str]:
    """The words of the command that prints the first screen."""
    return ["analyze", LOG, "--hw", "910b3", "--no-color", "--lang", language]


def picture(output: str, language: str) -> str:
    """The SVG of ``output``. Raises ValueError if it does not have one of the parts of site_picture.toml."""
    parts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["part"]
    lines = [f"$ {COMMAND}", "", *output.rstrip().split("\n")]
    below = MARGIN + LINE * (len(lines) + 1)
    height = below + LEGEND * ((len(parts) + 1) // 2) + MARGIN / 2
    shapes = [
        *_screen(lines),
        f'<path d="M{MARGIN} {below - LINE / 2} H{WIDTH - MARGIN}" stroke="#4a525c"/>',
        *_marks("\n".join(lines), [part["find"][language] for part in parts]),
        *_legend([part["text"][language] for part in parts], below),
    ]
    title = escape(TITLES[language])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" width="{WIDTH:.0f}" '
        f'role="img" aria-label="{title}">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1b1f24"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def _place(text: str, at: int) -> tuple[float, float]:
    """Left end and base line of the character ``at`` of ``text``."""
    before = text[:at].split("\n")
    return MARGIN + cell_len(before[-1]) * CHARACTER, MARGIN + LINE * len(before)


def _screen(lines: list[str]) -> Iterator[str]:
    """Each word where a terminal has it, whatever font the reader has."""
    text = "\n".join(lines)
    for word in re.finditer(r"\S+", text):
        x, y = _place(text, word.start())
        kind = ' class="command"' if y == MARGIN + LINE else ""
        length = f'textLength="{cell_len(word[0]) * CHARACTER:.1f}" lengthAdjust="spacingAndGlyphs"'
        yield f'<text x="{x:.1f}" y="{y}" {length}{kind}>{escape(word[0], quote=False)}</text>'


def _marks(text: str, patterns: list[str]) -> Iterator[str]:
    """A frame around each part, with its number."""
    output = text.index("\n\n") + 2
    for number, pattern in enumerate(patterns, 1):
        match = re.search(pattern, text[output:], re.MULTILINE)
        if match is None:
            raise ValueError(f"no {pattern!r} in the first screen: change site_picture.toml")
        begin, end = match.span(match.re.groups)
        x, y = _place(text, output + begin)
        width = cell_len(text[output + begin : output + end]) * CHARACTER
        yield f'<rect class="part" x="{x - 3:.1f}" y="{y - 14}" width="{width + 6:.1f}" height="19" rx="4"/>'
        yield _number(number, x - 7, y - 13)


def _number(number: int, x: float, y: float) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8"/><text class="number" x="{x:.1f}" y="{y + 3.5:.1f}">{number}</text>'
    )


def _legend(texts: list[str], top: float) -> Iterator[str]:
    """The explanations in two columns."""
    rows = (len(texts) + 1) // 2
    for index, text in enumerate(texts):
        column, row = divmod(index, rows)
        x, y = MARGIN + 8 + column * (WIDTH / 2 - 4), top + LEGEND * row + 10
        yield _number(index + 1, x, y)
        yield f'<text class="legend" x="{x + 14:.1f}" y="{y + 4.5:.1f}">{escape(text, quote=False)}</text>'


def draw() -> None:
    """Write the picture of each language."""
    for language, path in PICTURES.items():
        command = [sys.executable, "-m", "logparse", *arguments(language)]
        environment = {"COLUMNS": str(COLUMNS), "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        path.write_text(picture(done.stdout, language), encoding="utf-8")


if __name__ == "__main__":
    draw()
