"""Words that names, docstrings and comments of this project avoid, since the field has better ones.

python tests/support/plain_names.py [PATH ...] prints each place.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

# The word, and what to write instead.
REPLACED = {
    "told": "reported, printed",
    "tell": "report, show, say which",
    "tells": "reports, shows",
    "said": "given, printed",
    "mend": "repair, fix",
    "mended": "repaired, fixed",
    "beside": "next to, along with",
    "behind": "after",
    "stand": "be, be printed",
    "stands": "is, is printed",
    "usual": "baseline, typical",
    "odd": "outlier, invalid",
    "heard": "given",
    "alike": "comparable, equal",
    "lack": "miss",
    "lacks": "is missing",
    "lacking": "missing",
}
# Python's files have a method of this name.
ALLOWED = {("remote.py", "tell"), ("sources.py", "tell")}
# Fields of findings and texts are data that scripts read.
FIELDS_OF = {"info", "warning", "tr", "msg", "Note", "dict", "pick"}


def offences(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, word and name or text of each place in a file where a word is used that has a better one."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        for name in _names(node):
            for part in name.lower().strip("_").split("_"):
                if part in REPLACED and (path.name, name) not in ALLOWED:
                    yield getattr(node, "lineno", 0), part, name
        # The help of a command is one of the texts that users read, in two languages.
        is_help = path.parent.name == "commands" and isinstance(node, ast.FunctionDef) and node.name[0] != "_"
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and not is_help
        if documented and (text := ast.get_docstring(node)):
            yield from ((getattr(node, "lineno", 1), word, "docstring") for word in _words(text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from ((token.start[0], word, "comment") for word in _words(token.string))


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).rpartition(".")[2]]
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FIELDS_OF):
        return [keyword.arg for keyword in node.keywords if keyword.arg]
    return []


def _words(text: str) -> list[str]:
    plain = re.sub(r"``[^`]*``|`[^`]*`|\"[^\"]*\"", "", text)
    return [word for word in re.findall(r"[a-z]+", plain.lower()) if word in REPLACED]


def main() -> None:
    """Print each place below the paths of the command line, or of both packages."""
    places = [Path(argument) for argument in sys.argv[1:]] or [Path("logparse"), Path("analysis")]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    total = 0
    for file in files:
        for line, word, name in offences(file):
            print(f"{file}:{line}: {word!r} in {name}: {REPLACED[word]}")
            total += 1
    print(f"{total} places")


if __name__ == "__main__":
    main()
