"""docs/warnings.md has each warning once, and no code that no longer exists."""

import ast
import tomllib
from collections.abc import Iterator

import regex
from helpers import ROOT

TEXT = (ROOT / "docs/warnings.md").read_text(encoding="utf-8")
CODES = regex.findall(r"^- (`[^:]+`): ", TEXT, regex.MULTILINE)
WORDS = tomllib.loads((ROOT / "analysis/present/words/en.toml").read_text(encoding="utf-8"))


def first_arguments() -> Iterator[ast.expr]:
    """The code of each warning that is made anywhere."""
    for package in ("logparse", "analysis"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "warning":
                    yield node.args[0]


def codes_of(code: ast.expr) -> Iterator[str]:
    """The codes that an expression can be; none where it is a name, whose codes have a clause of the first screen."""
    if isinstance(code, ast.Constant):
        yield code.value
    elif isinstance(code, ast.JoinedStr):
        parts = (regex.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in code.values)
        pattern = regex.compile("".join(parts))
        yield from (note for note in WORDS["notes"] if pattern.fullmatch(note))
    elif isinstance(code, ast.IfExp):
        yield from codes_of(code.body)
        yield from codes_of(code.orelse)


def test_every_warning_is_in_one_item():
    made = {code for expression in first_arguments() for code in codes_of(expression)}
    assert {"link_slower_than_step", "copy_ahead", "device_unknown"} < made
    listed = [code for codes in CODES for code in regex.findall(r"`(\w+)`", codes)]
    assert sorted(listed) == sorted(made | WORDS["clauses"].keys())
