"""Below the screens nothing is said but in errors, and whatever is found has words in every language."""

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import regex
from helpers import ROOT

from analysis.present.words import words
from logparse.language import LANGUAGES

SOURCES = sorted(path for package in ("logparse", "analysis") for path in (ROOT / package).rglob("*.py"))
# Where sentences are made, what makes them possible, and the registry whose labels are marked for the catalogue.
SPEAKING = ("analysis/present/", "analysis/commands/", "analysis/cli.py", "analysis/metrics.py")
SPEAKING += ("logparse/language.py", "logparse/errors.py")
# Rooms that still make sentences; none may be added.
EXEMPT = ("analysis/charts/", "analysis/compare/", "analysis/history/", "analysis/report/")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(text: str) -> list[ast.AST]:
    """All nodes of a module, each with its parent, from the top down."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for parent in nodes:
        children = list(ast.iter_child_nodes(parent))
        for child in children:
            child.parent = parent
        nodes += children
    return nodes


def called(node: ast.AST) -> str:
    """The name of the function that ``node`` calls; "" where it calls none."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def calls(path: Path, *names: str) -> list[ast.Call]:
    text = text_of(path)
    # To take a module to pieces takes longer than to see that it calls none of them.
    return (
        [node for node in nodes_of(text) if called(node) in names] if any(f"{name}(" in text for name in names) else []
    )


# Nothing is said but in errors.


def is_error(node: ast.AST) -> bool:
    return called(node).endswith("Error") or called(node) in ("unknown_name", "BadParameter")


def scope_of(node: ast.AST) -> ast.AST:
    while not isinstance(node, ast.FunctionDef | ast.Module):
        node = node.parent
    return node


def ends_in_error(node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the text of ``node`` goes into an error, by way of local names and of functions of the module."""
    while not is_error(node):
        parent = node.parent
        if isinstance(parent, ast.Return | ast.Yield | ast.YieldFrom):
            return all_end_in_error(scope_of(parent).name, module_of(node), seen | {parent})
        if isinstance(parent, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
            return isinstance(target, ast.Name) and all_end_in_error(target.id, scope_of(parent), seen | {parent})
        if isinstance(parent, ast.stmt):
            return isinstance(parent, ast.Raise)
        node = parent
    return True


def module_of(node: ast.AST) -> ast.AST:
    while not isinstance(node, ast.Module):
        node = node.parent
    return node


def all_end_in_error(name: str, scope: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether every use of ``name`` in ``scope`` does; one that is looked at already does not count again."""
    nodes = (node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    uses = [node for node in nodes if node.id == name]
    return bool(uses) and all(any(s in seen for s in above(use)) or ends_in_error(use, seen) for use in uses)


def above(node: ast.AST) -> Iterator[ast.AST]:
    while not isinstance(node, ast.Module):
        node = node.parent
        yield node


def spoken(path: Path) -> list[str]:
    """Calls of ``tr`` and ``msg`` in ``path`` whose text is not that of an error."""
    return [f"{named(path)}:{call.lineno}" for call in calls(path, "tr", "msg") if not ends_in_error(call)]


SILENT = [path for path in SOURCES if not named(path).startswith((*SPEAKING, *EXEMPT))]


def test_nothing_is_said_below_the_screens_but_in_errors():
    assert [said for path in SILENT for said in spoken(path)] == []


@pytest.mark.parametrize("room", EXEMPT)
def test_what_is_exempt_still_needs_it(room):
    assert any(spoken(path) for path in SOURCES if named(path).startswith(room))


def test_the_walk_finds_what_is_said_elsewhere():
    """Sentences of screens are seen; those of errors, by way of a name, a constant or a function, are let through."""
    assert spoken(ROOT / "analysis" / "present" / "views" / "hardware.py")
    said = """
GIVE = msg("give one")
SIZES = {"heads": msg("heads")}
def remedy(): return tr("use one of {names}")
def loudly():
    kind = msg("size")
    print(tr("hello"))
    note = tr("one") + tr("two")
    if note:
        problem = tr("three")
        raise UsageError(problem, remedy=tr(GIVE) or remedy(), where=tr(SIZES[kind]))
    return note
"""
    found = [node for node in nodes_of(said) if called(node) in ("tr", "msg")]
    assert sorted(node.args[0].value for node in found if not ends_in_error(node)) == ["hello", "one", "two"]


# Where a process begins it is told the language: the command line, and a worker here or on another machine.
WORKERS = ("engine.py", "local_workers.py", "own_process.py")
BEGINNINGS = ("logparse/__main__.py", *(f"analysis/batch/{name}" for name in WORKERS))


def test_nothing_below_the_screens_asks_for_the_language():
    below = [path for path in SILENT if named(path) not in BEGINNINGS]
    assert [named(path) for path in below if calls(path, "current_language", "use_language", "speaking")] == []


# Whatever is found has words.

NOTES = {language: words(language)["notes"] for language in LANGUAGES}


def codes(node: ast.expr) -> Iterator[str]:
    """Patterns of the codes that an argument can be; none where only the run of the program tells."""
    if isinstance(node, ast.Constant):
        yield regex.escape(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(regex.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in node.values)
    elif isinstance(node, ast.IfExp):
        yield from codes(node.body)
        yield from codes(node.orelse)
    elif isinstance(node, ast.Name):
        for given in ast.walk(scope_of(node)):
            if isinstance(given, ast.Assign) and getattr(given.targets[0], "id", None) == node.id:
                yield from codes(given.value)
            elif isinstance(given, ast.For | ast.comprehension) and node.id in names_in(given.target):
                yield from (part.value for part in ast.walk(given.iter) if getattr(part, "value", None) in NOTES["en"])


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def fields_of(template: str) -> dict[str, str]:
    """The forms of a template's fields by name."""
    return {name: form or "" for _, name, form, _ in string.Formatter().parse(template) if name is not None}


def said_with(pattern: str, call: ast.Call) -> list[str]:
    """Codes of ``pattern`` whose words in every language find their fields in ``call``."""
    given = {keyword.arg for keyword in call.keywords}
    templates = {code: [NOTES[language][code] for language in LANGUAGES] for code in NOTES["en"]}
    return [
        code
        for code, said in templates.items()
        if regex.fullmatch(pattern, code) and (None in given or all(fields_of(t).keys() <= given for t in said))
    ]


def test_every_note_has_words_for_its_fields():
    made = [(path, call) for path in SOURCES for call in calls(path, "warning", "info") if call.args]
    every = [(f"{named(path)}:{call.lineno}", call, pattern) for path, call in made for pattern in codes(call.args[0])]
    assert [(place, pattern) for place, call, pattern in every if not said_with(pattern, call)] == []
