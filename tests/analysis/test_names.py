"""One name, one thing: what is met in two rooms under one name is taken for the same."""

import ast
from collections import Counter

from helpers import ROOT


def test_no_two_classes_have_one_name():
    files = [path for package in ("logparse", "analysis") for path in (ROOT / package).rglob("*.py")]
    parsed = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    names = Counter(node.name for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []
