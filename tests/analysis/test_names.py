"""One name, one thing: what is met in two rooms under one name is taken for the same."""

import ast
from collections import Counter, defaultdict

from helpers import ROOT


def test_no_two_classes_have_one_name():
    files = [path for package in ("logparse", "analysis") for path in (ROOT / package).rglob("*.py")]
    parsed = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    names = Counter(node.name for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


# Rooms that are stages of one subject: computed, drawn, shown, put on a page, asked for.
STAGES = {"charts", "commands", "compare", "nightly", "published", "report", "run", "views"}
# The same subject where it is read.
READ = {"ending.py", "megatron.py", "ranks.py", "settings.py"}


def test_files_of_one_name_are_stages_of_one_subject():
    rooms = defaultdict(list)
    for path in (path for package in ("logparse", "analysis") for path in (ROOT / package).rglob("[!_]*.py")):
        rooms[path.name].append(path)
    apart = {
        name: paths
        for name, paths in rooms.items()
        if len(paths) > 1 and name not in READ and not all(STAGES & set(path.parts) for path in paths)
    }
    assert apart == {}
