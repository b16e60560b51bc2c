"""Both languages: no message is missing from a catalogue, none is there in vain, and the numbers are the same."""

import ast
import string
import tomllib
from collections.abc import Container, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import regex
import typer.main
from helpers import ROOT, documented_formulas, megatron_log, run_logparse, run_process
from rich.cells import cell_len

from analysis.cli import build_app
from analysis.commands._help import FILLED, shown_help, translate_refusal
from analysis.flops import all_formulas, find_formula
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.hardware.devices import BASES, BY_HAND, all_devices
from analysis.model.catalogue import find_model
from analysis.present.console import wrap
from analysis.present.words import words as words_of_codes
from logparse.context.dialects import DIALECTS
from logparse.language import LANGUAGES, language_of_locale, use_language
from logparse.schema import QUANTITIES

pytestmark = pytest.mark.usefixtures("analysed_once")

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


def commands_below(command: Any) -> Iterator[Any]:
    yield command
    for name in getattr(command, "commands", {}):
        yield from commands_below(command.get_command(None, name))


def said_by_help() -> dict[str, str]:
    commands = list(commands_below(typer.main.get_command(build_app())))
    helps = {shown_help(command): f"help of {command.name}" for command in commands}
    filled = {text: template for text, (template, _) in FILLED.items()}
    options = [(filled.get(p.help, p.help), f"{c.name}: {p.name}") for c in commands for p in c.params if p.help]
    return helps | dict(options)


def said_by_data() -> dict[str, str]:
    """Words of tables that are shown to people."""
    quantities = {q.meaning: "QUANTITIES" for q in QUANTITIES}
    titles = {f.title: "PRINTED_FORMULAS" for f in PRINTED_FORMULAS.values()}
    devices = [(d, p) for d in all_devices() for p in d.peaks]
    words = {word: "devices.toml" for d, p in devices for word in (*d.notes, p.confidence)}
    formulas = {word: name for name in documented_formulas() for word in words_of_formula(name)}
    words |= dict.fromkeys(("unverified", *BASES, BY_HAND, "given", "unknown"), "hardware")
    names = (word for d in DIALECTS for word in (d.framework, d.version) if word)
    frameworks = {name: "DIALECTS" for name in names if regex.search(r"\b(?:or|to|since|later|family|backend)\b", name)}
    return quantities | titles | words | formulas | frameworks


def words_of_formula(name: str) -> set[str]:
    """Its title and its terms. They may have a translation; those of a formula in the documents must."""
    shape = replace(find_model("llama2-7b").shape, padded_vocab_size=32000, adapter_parameters=1)
    formula = find_formula(name)
    return {formula.title, formula.phrase, *(formula.terms_per_token(shape, 4096) or {})}


@cache
def said() -> dict[str, str]:
    return said_by_data() | said_by_pages() | said_by_help() | said_by_code()


def test_the_walk_finds_messages_of_every_kind():
    assert len(said_by_code()) > 200
    assert min(map(len, (said_by_pages(), said_by_help(), said_by_data()))) > 20


def test_no_formatted_string_is_a_key():
    calls = [(p, node) for p in SOURCES for node in ast.walk(tree(p)) if called(node) in ("tr", "msg") and node.args]
    wrong = [place(path, c) for path, c in calls if any(isinstance(part, ast.JoinedStr) for part in meant(c.args[0]))]
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
    optional = {word for name in all_formulas() for word in words_of_formula(name)}
    assert set(catalogue(language)) - set(said()) - optional == set()


class Anything(str):
    """A value that takes any format spec and any conversion."""

    def __format__(self, spec: str) -> str:
        kinds = {"d": 7, "f": 7.5, "g": 7.5, "%": 0.5, "e": 7.5}
        return format(kinds[spec[-1]], spec) if spec and spec[-1] in kinds else format(str(self), spec)


def fields(text: str) -> list[tuple[str, str | None, str | None]]:
    return [(name, spec, how) for _, name, spec, how in string.Formatter().parse(text) if name is not None]


def pairs(language: str) -> Iterator[tuple[str, str]]:
    """English and its translation: messages of the catalogue, and words of codes."""
    yield from catalogue(language).items()
    for table, english in words_of_codes("en").items():
        yield from ((text, words_of_codes(language)[table][code]) for code, text in english.items())


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
    for english, translated in pairs(language):
        plain = regex.sub(r"\{[^}]*\}", "", english)
        assert [word for word in typed.findall(plain) if word not in translated] == [], english


def test_chinese_has_chinese_punctuation():
    """Between Han characters; a colon or a comma between two Latin words may be code."""
    wrong = regex.compile(r"\p{Han}\s*[,;:!?](?!\S*`)|[,;]\s*\p{Han}|\p{Han}\(|\)\p{Han}")
    assert [text for _, text in pairs("zh") if wrong.search(text)] == []


# What people are told comes from a catalogue.

ERRORS = ("LogparseError", "UsageError", "InputError", "NoStepLineError", "InsufficientDataError")


def texts_of(call: ast.Call) -> list[ast.expr]:
    """The arguments of an error or unknown_name that people read."""
    name, remedy = called(call), [k.value for k in call.keywords if k.arg in ("remedy", "problem", "text")]
    if name == "unknown_name":
        return [call.args[0], *call.args[3:], *remedy]
    return [*call.args[:1], *remedy]


def is_bare(node: ast.expr) -> bool:
    """A literal, or literals joined, that went through neither tr nor msg."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant | ast.JoinedStr)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and bool(node.value))


def test_errors_take_no_bare_text():
    calls = [(p, node) for p in SOURCES for node in ast.walk(tree(p)) if called(node) in (*ERRORS, "unknown_name")]
    wrong = [place(path, c) for path, c in calls if any(is_bare(p) for text in texts_of(c) for p in meant(text))]
    assert wrong == []


# Calls whose words are no message: data, formulas and their sources, regular expressions, what is a fault of ours.
NO_MESSAGE = (
    *("Column", "Quantity", "ValueError", "AttributeError", "RuntimeError", "FrozenInstanceError"),
    *("compile", "lazy_regex", "pick"),
    *("Formula", "PrintedFormula", "_m", "Metric", "_rate", "_time", "Dialect"),
)
NO_MESSAGE_NAMED = ("help", "source", "text", "rich_help_panel", "printed_by", "labels", "settings")
# Files of other data: what frameworks print, fonts, titles that said_by_data collects, sources of figures, JSON keys.
NO_MESSAGE_IN = (
    *("analysis/present/views/compact.py", "analysis/present/views/short_ending.py"),
    *("logparse/formats/", "logparse/inputs/ranks.py", "logparse/inputs/writers.py"),
    *("analysis/charts/look.py", "analysis/flops/printed/", "analysis/estimate/assumptions.py"),
)
# Panels have names, which are shown only where Typer lays help out in panels; a peak is translated as data are;
# formulas of figures are for JSON.
NEVER_SHOWN = ("_PANEL", "MODEL", "BY_HAND", "STATE_OF_STAGE", "ACTIVATIONS_OF_STAGE")
PROSE = regex.compile(r"(?:\b[A-Za-z]{2,}[,;:]? ){2}[a-z]{2,}\b")


def key_lists(path: Path) -> set[str]:
    """The names of constants that hold the keys of a JSON object."""
    calls = (node for node in ast.walk(tree(path)) if called(node) == "pick")
    return {node.args[1].id for node in calls if isinstance(node.args[1], ast.Name)}


def is_message(node: ast.AST, never_shown: Container[str]) -> bool:
    """Whether a literal stands where people may read it, and went through neither tr nor msg."""
    while not isinstance(node, ast.Module):
        parent = node.parent
        if isinstance(parent, ast.Expr | ast.Compare) or called(parent) in ("tr", "msg", *NO_MESSAGE):
            return False
        if isinstance(parent, ast.keyword) and parent.arg in NO_MESSAGE_NAMED:
            return False
        if isinstance(parent, ast.Assign) and getattr(parent.targets[0], "id", None) in never_shown:
            return False
        node = parent
    return True


def prose_in(path: Path) -> list[str]:
    """Sentences in ``path`` that went through no catalogue."""
    found, never_shown = [], {*NEVER_SHOWN, *key_lists(path)}
    for node in ast.walk(tree(path)):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if PROSE.search(text) and not text.startswith("@") and is_message(node, never_shown):
            found.append(f"{place(path, node)}: {text}")
    return found


def test_no_sentence_stands_outside_the_catalogue():
    told = [path for path in SOURCES if not str(path.relative_to(ROOT)).startswith(NO_MESSAGE_IN)]
    assert {str(path): prose for path in told if (prose := prose_in(path))} == {}


# The command in both languages.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.log").write_text(megatron_log())
    return tmp_path


ANALYZE = ("analyze", "run.log", "--hw", "h100")
WAYS = {
    "--lang": (("--lang", "zh"), {}),
    "LANG": ((), {"LANG": "zh_CN.UTF-8"}),
    "LC_MESSAGES": ((), {"LC_MESSAGES": "zh_CN.UTF-8"}),
    "--lang over LC_ALL": (("--lang", "zh"), {"LC_ALL": "C.UTF-8"}),
}


def chinese(text: str) -> bool:
    return HAN.search(text) is not None


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_asking_for_chinese(folder, way):
    flags, environment = WAYS[way]
    shown = run_logparse(*ANALYZE, "-v", *flags, cwd=folder, **environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "每步耗时" in shown.stdout
    assert "step lines" not in shown.stdout
    refused = run_logparse("analyze", "gone.log", *flags, cwd=folder, **environment)
    assert refused.returncode == 2
    assert refused.stderr.startswith("logparse: 文件不存在：gone.log\n  建议：")
    helped = run_logparse("analyze", *flags, "--help", cwd=folder, **environment)
    assert helped.stdout.startswith("示例：")
    assert "显示本帮助并退出" in helped.stdout
    assert "Print " not in helped.stdout


@pytest.mark.parametrize(
    ("flags", "environment"),
    [
        ((), {}),
        ((), {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}),
        ((), {"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "C.UTF-8"}),
        ((), {"LANG": "de_DE.UTF-8"}),
        (("--lang", "en"), {"LANG": "zh_CN.UTF-8"}),
        (("--lang", "en"), {"LC_ALL": "zh_CN.UTF-8"}),
    ],
)
def test_english_else(folder, flags, environment):
    english = run_logparse(*ANALYZE, cwd=folder).stdout
    assert run_logparse(*ANALYZE, *flags, cwd=folder, **environment).stdout == english
    assert not chinese(english)
    assert not chinese(run_logparse("analyze", *flags, "--help", cwd=folder, **environment).stdout)


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.Big5"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_locale_variables_in_their_order(environment, language):
    assert language_of_locale(environment) == language


@pytest.mark.parametrize("asked", ["fr", "", "ZH", "zh_CN"])
def test_unknown_language_is_refused(folder, asked):
    done = run_logparse(*ANALYZE, "--lang", asked, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'--lang': {asked!r} is not one of en, zh" in done.stderr


DOCUMENTS = (
    ("analyze", "run.log", "--hw", "910b", "--utilisation", "0.4"),
    ("analyze", "run.log", "--peak-tflops", "400"),
    ("formulas", "run.log"),
    ("formulas", "run.log", "--num-layers", "31"),
    ("estimate", "--from", "run.log", "--hw", "910b", "--tp", "4", "--tokens", "1e12", "--days", "30"),
    ("estimate", "--num-layers", "32", "--hidden-size", "4096"),
    ("baselines",),
    ("models",),
    ("hardware",),
)


@pytest.mark.parametrize("arguments", DOCUMENTS, ids=" ".join)
def test_documents_are_the_same_in_every_language(folder, arguments):
    """Byte for byte: programs go by them on every machine."""
    ways = ({}, {"LC_ALL": "zh_CN.UTF-8"})
    found = [run_logparse(*arguments, "--json", cwd=folder, **environment) for environment in ways]
    found.append(run_logparse(*arguments, "--json", "--lang", "zh", cwd=folder))
    assert found[0].returncode == 0
    assert len({done.stdout for done in found}) == 1
    assert chinese(found[0].stdout) is False


def test_tables_hold_the_same(folder):
    for language in ("en", "zh"):
        run_logparse(*ANALYZE, "-o", language, "--no-charts", "--lang", language, cwd=folder)
    names = sorted(f.name for f in (folder / "en").glob("*.parquet"))
    assert names == sorted(f.name for f in (folder / "zh").glob("*.parquet"))
    for name in names:
        assert pl.read_parquet(folder / "en" / name).equals(pl.read_parquet(folder / "zh" / name)), name


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "--no-such-flag"),
        ("analyze",),
        ("analyze", "run.log", "--world-size", "many"),
        ("analyze", "run.log", "--world-size", "0"),
        ("analyze", "run.log", "--peak-tflops", "many"),
        ("analyze", "run.log", "--hw"),
        ("analyze", "run.log", "--json=1"),
        ("formulas", "a", "--no-b"),
        ("modells",),
        ("nothing-like-it",),
    ],
    ids=" ".join,
)
def test_usage_errors_are_chinese(folder, arguments):
    """Every line but the one with the usage, which is made of names."""
    done = run_logparse(*arguments, cwd=folder, LANG="zh_CN.UTF-8")
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line and not line.startswith("  ")]
    assert all(chinese(line) for line in said)
    assert not regex.search("[a-z]+ [a-z]+ [a-z]+ [a-z]+", said[-1])


def test_a_terminal_without_han_characters_gets_question_marks(folder):
    done = run_process(*ANALYZE, "--lang", "zh", cwd=folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "??" in done.stdout


def test_help_is_no_wider_than_the_terminal(folder):
    done = run_logparse("analyze", "--help", cwd=folder, LANG="zh_CN.UTF-8", COLUMNS="80")
    assert max(cell_len(line) for line in done.stdout.splitlines()) <= 80


def test_wrapping_parts_words_at_spaces_and_han_anywhere():
    assert wrap("以 MFU 计，每步耗时", 12) == ["以 MFU 计，", "每步耗时"]
    assert wrap("一二三四五六", 7) == ["一二三", "四五六"]
    assert wrap("一二三。", 6) == ["一二", "三。"]
    assert wrap("", 6) == [""]
    assert wrap("averylongword", 6) == ["averylongword"]


def test_what_typer_says_is_known_whole():
    try:
        use_language("zh")
        assert translate_refusal("Error: No such option: --x") == "错误：没有这个选项：--x"
        assert translate_refusal("something new") == "something new"
    finally:
        use_language("en")
