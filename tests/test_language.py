"""Both languages: no message is missing from a catalogue, none is there in vain, and the numbers are the same in both."""

import ast
import json
import string
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import regex
import typer.main
from helpers import ROOT, megatron_log, run_logparse

from analysis.devices import all_devices
from analysis.flops.printed import PRINTED_FORMULAS
from logparse.cli import build_app
from logparse.commands._help import shown_help, translate_refusal, wrap
from logparse.language import LANGUAGES, language_of_locale, tr, use_language
from logparse.schema import QUANTITIES

SOURCES = sorted(f for package in ("logparse", "analysis") for f in (ROOT / package).rglob("*.py"))
PAGES = sorted(f for f in (ROOT / "analysis").rglob("*.j2"))
CATALOGUES = [language for language in LANGUAGES if language != "en"]
HAN = regex.compile(r"\p{Han}")


# What is said in the code.


@cache
def tree(path: Path) -> ast.Module:
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    for parent in ast.walk(parsed):
        for child in ast.iter_child_nodes(parent):
            child.parent = parent
    return parsed


def called(node: ast.AST) -> str:
    """The name of the function that ``node`` calls; "" where it calls none."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def meant(node: ast.expr, depth: int = 3) -> Iterator[ast.expr]:
    """What an argument can be: both sides of a condition, and what a local name is bound to."""
    if isinstance(node, ast.IfExp):
        yield from meant(node.body, depth)
        yield from meant(node.orelse, depth)
    elif isinstance(node, ast.BinOp):
        yield from meant(node.left, depth)
        yield from meant(node.right, depth)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from meant(value, depth)
    elif isinstance(node, ast.Name) and depth and (bound := list(assigned(node))):
        for value in bound:
            yield from meant(value, depth - 1)
    else:
        yield node


def assigned(name: ast.Name) -> Iterator[ast.expr]:
    """What the function around ``name`` assigns to it."""
    scope = name.parent
    while not isinstance(scope, ast.FunctionDef | ast.Module):
        scope = scope.parent
    for node in ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value:
            yield from (node.value for target in targets if getattr(target, "id", None) == name.id)


def said_by_code() -> dict[str, str]:
    """Every literal that goes through tr or msg, with its place."""
    found = {}
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if called(node) in ("tr", "msg") and node.args:
                for part in meant(node.args[0]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        found[part.value] = place(path, node)
    return found


def said_by_pages() -> dict[str, str]:
    pattern = regex.compile(r'\btr\(\s*"((?:[^"\\]|\\.)*)"')
    return {text: f.name for f in PAGES for text in pattern.findall(f.read_text(encoding="utf-8"))}


def said_by_help() -> dict[str, str]:
    group = typer.main.get_command(build_app())
    commands = [group, *group.commands.values()]
    helps = {shown_help(command): f"help of {command.name}" for command in commands}
    return helps | {p.help: f"{c.name}: {p.name}" for c in commands for p in c.params if p.help}


def said_by_data() -> dict[str, str]:
    """Words of tables that are shown to people."""
    quantities = {q.meaning: "QUANTITIES" for q in QUANTITIES}
    titles = {f.title: "PRINTED_FORMULAS" for f in PRINTED_FORMULAS.values()}
    devices = [(d, p) for d in all_devices() for p in d.peaks]
    words = {word: "devices.csv" for d, p in devices for word in (*d.notes, p.confidence)}
    return quantities | titles | words | {"unverified": "devices.csv"}


@cache
def said() -> dict[str, str]:
    return said_by_data() | said_by_pages() | said_by_help() | said_by_code()


def test_the_walk_finds_messages_of_every_kind():
    assert len(said_by_code()) > 200
    assert min(map(len, (said_by_pages(), said_by_help(), said_by_data()))) > 20


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_formatted_string_is_a_key(path):
    calls = [node for node in ast.walk(tree(path)) if called(node) in ("tr", "msg") and node.args]
    wrong = [place(path, c) for c in calls if any(isinstance(part, ast.JoinedStr) for part in meant(c.args[0]))]
    assert wrong == []


# The catalogues.


@cache
def catalogue(language: str) -> dict[str, str]:
    return tomllib.loads((ROOT / "logparse" / "languages" / f"{language}.toml").read_text(encoding="utf-8"))


def test_every_language_has_its_catalogue():
    assert {f.stem for f in (ROOT / "logparse" / "languages").glob("*.toml")} == set(CATALOGUES)


@pytest.mark.parametrize("language", CATALOGUES)
def test_no_message_is_missing(language):
    assert {text: where for text, where in said().items() if text not in catalogue(language)} == {}


@pytest.mark.parametrize("language", CATALOGUES)
def test_no_message_is_there_in_vain(language):
    assert set(catalogue(language)) - set(said()) == set()


class Anything(str):
    """A value that takes any format spec and any conversion."""

    def __format__(self, spec: str) -> str:
        kinds = {"d": 7, "f": 7.5, "g": 7.5, "%": 0.5, "e": 7.5}
        return format(kinds[spec[-1]], spec) if spec and spec[-1] in kinds else format(str(self), spec)


def fields(text: str) -> list[tuple[str, str | None, str | None]]:
    return sorted((name, spec, how) for _, name, spec, how in string.Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("language", CATALOGUES)
def test_fields_are_the_same_in_both_languages(language):
    for english, translated in catalogue(language).items():
        names = {name for name, _, _ in fields(english)}
        assert {name for name, _, _ in fields(translated)} == names, english
        assert all(name.isidentifier() for name in names), english
        values = {name: Anything("x") for name in names}
        assert english.format(**values), english
        assert translated.format(**values), english


@pytest.mark.parametrize("language", CATALOGUES)
def test_names_that_people_type_stay_as_they_are(language):
    """Flags, file names and names of settings."""
    typed = regex.compile(r"--[a-z][\w-]*|`[^`]+`|\b\w+\.(?:parquet|toml|py|html)\b|\b\w+_\w+\b")
    for english, translated in catalogue(language).items():
        plain = regex.sub(r"\{[^}]*\}", "", english)
        assert [word for word in typed.findall(plain) if word not in translated] == [], english


def test_chinese_has_chinese_punctuation():
    """Between Han characters; a colon or a comma between two Latin words may be code."""
    wrong = regex.compile(r"\p{Han}\s*[,;:!?](?!\S*`)|[,;]\s*\p{Han}|\p{Han}\(|\)\p{Han}")
    assert [text for text in catalogue("zh").values() if wrong.search(text)] == []


# What people are told comes from a catalogue.

ERRORS = ("LogparseError", "UsageError", "InputError", "NoStepLineError", "InsufficientDataError")


def texts_of(call: ast.Call) -> list[ast.expr]:
    """The arguments of an error, a note or unknown_name that people read."""
    name, remedy = called(call), [k.value for k in call.keywords if k.arg in ("remedy", "problem", "text")]
    if name == "unknown_name":
        return [call.args[0], *call.args[3:], *remedy]
    if name == "Note":
        return [*call.args[1:], *remedy]
    return [*call.args[:1], *remedy]


def is_bare(node: ast.expr) -> bool:
    """A literal, or literals joined, that went through neither tr nor msg."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant | ast.JoinedStr)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and bool(node.value))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_errors_and_notes_take_no_bare_text(path):
    calls = [node for node in ast.walk(tree(path)) if called(node) in (*ERRORS, "unknown_name", "Note")]
    wrong = [place(path, c) for c in calls if any(is_bare(p) for text in texts_of(c) for p in meant(text))]
    assert wrong == []


# Words that are no message: sources and symbols of formulas, columns of frames, what never leaves the program.
NO_MESSAGE = ("Column", "Dialect", "ValueError", "PrintedFormula", "_m", "_d", "_n", "Symbol")
PROSE = regex.compile(r"(?:\b[A-Za-z]{2,}[,;:]? ){2}[a-z]{2,}\b")


def is_message(node: ast.AST) -> bool:
    """Whether a literal stands where people may read it, and went through neither tr nor msg."""
    while not isinstance(node, ast.Module):
        parent = node.parent
        if isinstance(parent, ast.Expr) or called(parent) in ("tr", "msg", *NO_MESSAGE):
            return False
        if isinstance(parent, ast.keyword) and parent.arg in ("help", "source", "text"):
            return False
        node = parent
    return True


def prose_in(path: Path) -> list[str]:
    """Sentences in ``path`` that went through no catalogue."""
    found = []
    for node in ast.walk(tree(path)):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if PROSE.search(text) and is_message(node):
            found.append(f"{place(path, node)}: {text}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_stands_outside_the_catalogue(path):
    assert prose_in(path) == []
