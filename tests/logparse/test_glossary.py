"""Words of the field: each has one name in Chinese, and Chinese has its own punctuation."""

import tomllib

import pytest
import regex
from helpers import ROOT

from analysis.present.words import words

LANGUAGES = ROOT / "logparse" / "languages"
GLOSSARY = tomllib.loads((ROOT / "logparse" / "glossary.toml").read_text(encoding="utf-8"))
# Fields, commands and options, names of columns: the same in every language.
NO_WORDS = regex.compile(r"\{[^{}]*\}|`[^`]*`|--[\w-]+|\b\w+_\w+\b|\w+>=\S+|, goodput\b")


def both_languages():
    """Every message and every sentence of a code, in English and in Chinese."""
    yield from tomllib.loads((LANGUAGES / "zh.toml").read_text(encoding="utf-8")).items()
    english, chinese = words("en"), words("zh")
    yield from ((text, chinese[table][code]) for table, codes in english.items() for code, text in codes.items())


@pytest.mark.parametrize("term", GLOSSARY)
def test_a_term_has_one_name(term):
    pattern = regex.compile(rf"(?<![\w-]){term}", regex.IGNORECASE)
    said = [(english, chinese) for english, chinese in both_languages() if pattern.search(NO_WORDS.sub(" ", english))]
    assert said
    assert [pair for pair in said if not any(name in pair[1] for name in GLOSSARY[term])] == []


def test_chinese_has_its_own_punctuation():
    # A bracket behind a blank is arithmetic.
    beside = regex.compile(r"\p{Han}[,;:!?(]|[,;!?]\p{Han}")
    assert [chinese for _, chinese in both_languages() if beside.search(chinese)] == []
