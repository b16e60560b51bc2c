"""Secrets in texts of a log: masked before a text is kept, so that no output can show one.

A setting is masked by its name, any text by its shape and by the names in it. Both are data: ``secret_names.toml`` and
``secret_shapes.toml``. A mask shows whether two values differ: ``***`` and four hexadecimal digits of the value's
SHA-256. What is masked stays as it is when it is masked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path

import regex

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass
from logparse.package_tables import fields_of, read_table

_WORD = lazy_regex(r"[A-Z]++(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[0-9]+|[\u4e00-\u9fff]+")
MASKED = lazy_regex(r"\*\*\*[0-9a-f]{4}")
# Numbers, booleans, None and lists of them, stars, variables, special tokens such as <pad> and [MASK]: no secrets.
_NUMBER = r"[-+$]?(?:[0-9][0-9_,]*+\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?[%a-zA-Z]?"
_WORDS_OF_VALUES = r"(?i:true|false|none|null|nan|inf|auto|default|yes|no|on|off|enabled|disabled)"
_ITEM = rf"(?:{_NUMBER}|{_WORDS_OF_VALUES}|<[^<>]*+>|\[[A-Z_]++\]|\*++|\$\{{\w++\}})"
_PLAIN = lazy_regex(rf"[\s\[\](){{}}'\"]*+(?:{_ITEM}(?:[\s,'\"\])}}]++|$))*+|\*\*\*[0-9a-f]{{4}}")
# What is a password, though it looks like a number or a variable.
_PASSWORD = lazy_regex(r"-?[0-9]{4,}+[%a-zA-Z]?|<(?=\w*?[a-zA-Z]\d)(?=\w*?[A-Z])\w{6,64}+>")
# Two words that are one in the names of secrets.
_TWO_WORDS = lazy_regex(r"(?i)(?<![a-z])(pass)_?(word)(?![a-z])|(?<![a-z])(access)_?(id)(?![a-z])|\b(account)\.(key)\b")
# Words and short numbers, such as model.layers.0.weight: no key and no password is so.
_WORDS = lazy_regex(
    r"[\s\[\]'\",_.:/-]*+(?:[A-Z]?[a-z]{1,22}|[0-9]{1,4})(?:[\s\[\]'\",_.:/-]++(?:[A-Z]?[a-z]{1,22}|[0-9]{1,4}|$))*+"
)
LONGEST_WORDS = 512
# Within these a key without an owner shows what it is.
LONGEST_KEY = 128
# How much of a value shows whether it is a secret: a line of names would else be read once for each.
LONGEST_LOOK = LONGEST_WORDS + 1
# What a key without an owner looks like: letters and digits, mixed, without a break.
_RANDOM = lazy_regex(
    r"(?=[A-Za-z+=]*+[0-9])(?=[0-9+=]*+[A-Za-z])[A-Za-z0-9+=]{16,}+"
    r"|(?=\w*?[0-9])(?=\w*?[A-Z])(?=\w*?[a-z])[A-Za-z0-9]{10,}+"
)

# A value that is a secret after every name that can be that of one.
_ANY = "Aa1Bb2Cc3Dd4Ee5F"
_NAME = r"(?P<name>[^\W\d][\w.-]{0,128}+)"
_SIGN = r"(?::=|={1,3}>?|!={1,2}|[:：＝]|%3[AD])"
_SPACE = r"(?:\s|\\[nrt]){0,64}+"
# What can be between the sign and the value: the words of argparse, a quote of HTML, and a type.
_BETWEEN = (
    r"(?:invalid (?:choice|\w{1,32} value): |&(?:quot|apos|#3[49]);"
    r"|(?:str|bytes|Any|SecretStr|(?:Optional|Union)\[[\w., ]{1,64}+\])(?: ?\| ?None)?\s{0,3}=\s{0,3})?"
)
_ASSIGNED = lazy_regex(
    rf"(?<![\w.-])-{{0,2}}+{_NAME}(?:(?:\\*+[\"'`]|&(?:quot|apos|#3[49]);)?\]?|\[\d*\])"
    rf"{_SPACE}{_SIGN}{_SPACE}{_BETWEEN}"
)
# In quotes that are before the name a value goes on to their end, or to the next name.
_WHOLE = lazy_regex(
    rf"(?P<quote>[\"'`])-{{0,2}}+{_NAME}=(?P<secret>(?P<first>[^\s\"'`\\]++)"
    r"(?:(?!(?P=quote)|[\s,;&][\w.-]{1,64}+=)[^\\\r\n]){1,256}+)(?=\\*+(?P=quote))"
)
# Signs between a name and a value in a dump, a table or a call; words after them may be about anything.
_IN_NEXT_CELL = lazy_regex(
    rf"(?<![\w.-]){_NAME}[\"'`]?(?:\s{{0,3}}->\s{{0,3}}|\s{{0,3}}\.{{2,64}}\s{{1,3}}|\t{{1,8}}|\\t)"
    rf"|[|│┃]\s{{0,64}}+{_NAME}\s{{0,64}}+[|│┃]\s{{0,64}}+"
    rf"|(?<=[\"'`]){_NAME}\\*+[\"'`]\s{{0,3}},\s{{0,3}}(?=\\*+[\"'`])"
)
_FLAG = lazy_regex(rf"(?<![\w-])--?{_NAME}[\"']?,?\s{{1,3}}+(?!\\*+[\"']?-)")
# A quoted value right after a name, as `password "x"` or `secret("x")`.
_QUOTED = lazy_regex(rf"(?<![\w.]){_NAME}(?:\s{{1,3}}+|\()(?=\\*+[\"'`])")
_COMPARED = lazy_regex(rf"([\"'`])((?:(?!\1).){{1,256}}+)\1\s{{0,3}}[!=]={{1,2}}\s{{0,3}}{_NAME}")
# The name of a value in a dictionary or a call, as in {'db': ' and Field(default='.
_KEY = r"\\*+[\"']?(?P<key>[\w.-]{1,64}+)\\*+[\"']?\s{0,3}[:=]\s{0,3}"
_PREFIX = r"(?:[bBrRuUfF]{1,2}|@)?"
# Classes, brackets and prefixes before a quoted value, as SecretStr(', (' and b'.
_OPEN = rf"(?P<open>\{{\s{{0,3}}{_KEY}|(?:[A-Za-z_][\w.:]{{0,64}}+\(|[\[(]){{1,2}}\s{{0,3}}(?:{_KEY})?)"
_WRAPPER = rf"{_OPEN}?{_PREFIX}(?=\\*+[\"'`])"
# In quotes that are escaped themselves, as in JSON in a text of JSON, the same escaped quotes end the value.
_QUOTED_VALUE = "|".join(
    (
        *(rf"(?P<escape>\\++){quote}(?P<value>(?:(?!(?<!\\)(?P=escape){quote}).)++)" for quote in "\"'"),
        *(rf"{quote}(?P<value>(?:[^{quote}\\]|\\.|{quote}{quote}(?=\w))++)" for quote in "\"'`"),
    )
)
# An unquoted value ends at a space, before the next name, and before what closes the text around it.
_CLOSING = r"(?:\\?[\"'`]|[)\]},;.:])"
_NEXT = (
    rf"(?:[,;|&]\s{{0,3}}[\"']?-{{0,2}}[A-Za-z_][\w.-]{{0,64}}+[\"']?\s{{0,3}}[=:]"
    rf"|{_CLOSING}++(?:\s|[,;|&]|$)|\\[nrt]|&(?:quot|apos|#3[49]);)"
)
_PLAIN_VALUE = rf"\$\{{\w++\}}|(?:[^\s\x1b\"'`,;|&)\]}}\\.:]++|(?!{_NEXT})[^\s\x1b\"'`]|(?<=\w)['\"`](?=\w))++"
_VALUE = lazy_regex(rf"(?s){_WRAPPER}(?:{_QUOTED_VALUE})|(?P<value>{_PLAIN_VALUE})")
# Another value of the list that began with one.
_MORE = lazy_regex(rf"(?s)\\*+[\"'`]\s{{0,3}},\s{{0,3}}(?:{_KEY})?{_PREFIX}(?:{_QUOTED_VALUE})")
# What kind of secret follows, and what argparse says in place of a value.
_NO_VALUES = frozenset(("bearer", "basic", "digest", "token", "expected"))
# A port and a path with an @ are no password, but before a port of its own, and in the URL of a database.
_PORT = (
    r"(?<!(?:sql|mariadb|redis|mongodb|amqp)\w{0,8}://[^\s/@:'\"]{0,256}:)[0-9]{1,5}+/"
    r"(?![^\s'\"@]{1,256}+@[\w-][\w.-]{0,64}+:\d{2,5}\b)"
)
_IN_URL = lazy_regex(
    rf"(?<=://)([^\s/@:'\"]{{0,256}}+:)(?!{_PORT})"
    r"([^\s'\"@]{0,512}+(?:(?:['\"](?=@)|(?<=[\w:])['\"](?=\w))[^\s'\"@]{0,512}+){0,2}+@(?:[^\s/@'\"]{0,512}+@)*+)"
    r"|(?<=://)()((?:[^\s/@:'\"]{16,512}+|(?=\w*?(?:[A-Za-z]\d+[A-Za-z]|\d[A-Za-z]+\d))\w{8,15})@)"
    r"|(?<![\w.+/-])(\w[\w.+-]{0,64}+:)([^\s:@/'\"]{1,256}+@)(?=[\w-]{1,64}+(?:\.\w|:\d))"
)
# With one of these in place of a password the user is a token.
_NO_PASSWORDS = frozenset(("", "x-oauth-basic"))
# What a text holds, in lower case, that the names of secrets and the passwords of URLs can be in.
_OF_NAMES = (
    *("token", "key", "secret", "pass", "pwd", "pw=", "pw:", "pw ", "cred", "auth", "cookie", "jwt", "webhook", "@"),
    *(f"{name}{end}" for name in ("ak", "sk", "pat") for end in ("=", ":", "：", '"', "'", "\\", " =", " :")),
    *("-ak", "-sk", "_ak", "_sk", "accessid", "access_id"),
)
# The value of a flag, to the end of the quotes that it is in.
_OF_FLAG = r"(?P<secret>(?<=\")[^\"\\\n]++(?=\\?\")|(?<=')[^'\\\n]++(?=\\?')|[^\s\"',]++)"
# Before a secret: no word, or an escaped break of a line, or a sign of a URL in its code.
_BEFORE = r"(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})"
# Before one with a prefix also the name of a run or the like, if what follows is long and mixed.
_AFTER_NAME = (
    r"(?<=[A-Za-z0-9][_-])(?=[A-Z0-9]{16}"
    r"|[A-Za-z]{2,6}[_-]?(?:pat_)?(?=(?:\w*?\d){2})(?=(?:\w*?[A-Z]){2})[A-Za-z0-9]{16})"
)


@dataclass(frozen=True)
class Shape:
    """One entry of ``secret_shapes.toml``, which explains its fields."""

    what: str
    pattern: str | tuple[str, ...]
    source: str
    sample: tuple[str, ...]
    marks: tuple[str, ...] = ()
    find: str = "(?!)"

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """The pattern, whose group ``secret``, or else all of it, is masked."""
        pattern = "".join(self.pattern).replace("{value}", _OF_FLAG)
        before = f"{_BEFORE}|{_AFTER_NAME}" if self.marks else _BEFORE
        return regex.compile(pattern if "(?P<secret>" in pattern else f"(?:{before})(?:{pattern})")

    @cached_property
    def found(self) -> regex.Pattern[str]:
        """What finds the lines with such a secret, where it has no marks."""
        return regex.compile(self.find)

    def may_be_in(self, text: str, lowered: str) -> bool:
        """Whether ``text``, ``lowered`` in lower case, may have such a secret."""
        if self.marks:
            return any(mark in lowered for mark in self.marks)
        return self.found.search(text) is not None


@cache
def shapes() -> tuple[Shape, ...]:
    """The shapes of secrets, in the order in which they are masked."""
    return tuple(
        Shape(**fields_of(entry)) for entry in read_table(Path(__file__).parent / "secret_shapes.toml")["shape"]
    )


@cache
def marks() -> tuple[str, ...]:
    """What a text holds, in lower case, in which something may be masked; see ``finds`` too."""
    marks = dict.fromkeys(
        (*_OF_NAMES, *_names()["contains"], *_names()["secret"], *(mark for shape in shapes() for mark in shape.marks))
    )
    return tuple(mark for mark in marks if not any(other in mark and other != mark for other in marks))


@cache
def finds() -> regex.Pattern[str]:
    """A pattern that finds the shapes without a fixed text."""
    return regex.compile("|".join(shape.find for shape in shapes() if not shape.marks))


def mask(value: str) -> str:
    """What is shown in place of a secret; of two that differ two masks that differ."""
    return f"***{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}"


def mask_setting(name: str, value: str) -> str:
    """``value``, masked where ``name`` or its own shape makes it a secret."""
    return mask(value) if is_secret(name, value) else mask_text(value)


def mask_text(text: str) -> str:
    """``text`` with each secret in it masked that its shape or the name in front of it shows."""
    lowered = text.lower()
    if not _has_mark(lowered) and finds().search(text) is None:
        return text
    for shape in shapes():
        if shape.may_be_in(text, lowered):
            text = shape.compiled.sub(_masked, text)
    text = _WHOLE.sub(_masked_whole, _IN_URL.sub(_without_password, text))
    text = _mask_after(_FLAG, _mask_after(_ASSIGNED, _COMPARED.sub(_masked_comparison, text)))
    return _mask_after(_IN_NEXT_CELL, _mask_after(_QUOTED, text, _is_surely_secret), _is_secret_word)


def _has_mark(lowered: str) -> bool:
    # Each line of a log goes through this loop, and `any` of a generator is slower.
    for mark in marks():  # noqa: SIM110
        if mark in lowered:
            return True
    return False


def is_secret(name: str, value: str) -> bool:
    """Whether the setting ``name`` holds a secret, by its name, and ``value`` can be one."""
    *parents, last = _words(name)
    if last and _ends_with(last[-1], "about"):
        return False
    if _is_of_password(last) and _PASSWORD.fullmatch(value):
        return True
    if _PLAIN.fullmatch(value):
        return False
    if _is_strong(parents, last):
        return True
    *front, noun = _without_end(last, value) or [""]
    return _is_owned(noun, front, [word for words in (*parents, last[len(front) + 1 :]) for word in words], value)


def _without_end(words: list[str], value: str) -> list[str]:
    """The ``words`` of a name up to the one that says what it holds, which is apart from its owner."""
    ends = _names()["of_value"] if _is_words(value) else _names()["of_value"] | _names()["owners"] | {"for"}
    end = len(words)
    while end > 1 and (words[end - 1] in ends or words[end - 1].isdigit()):
        end -= 1
    *front, noun = words[:end] or [""]
    short = next((word for word in _names()["passes"] if noun.endswith(word)), "")
    owner = noun.removesuffix(short)
    return [*front, owner, short] if short and owner in _names()["owners"] else [*front, noun]


def _is_of_password(last: Sequence[str]) -> bool:
    """Whether the words of a name make a secret of a number of several digits."""
    return _has(last, "password") or not _names()["codes"].isdisjoint(last)


def _is_strong(parents: Sequence[Sequence[str]], last: Sequence[str]) -> bool:
    """Whether the words of a name, or one of its parts of one word, make a secret of any value."""
    every = [*last, *(parent[0] for parent in parents if len(parent) == 1)]
    return _has(every, "contains") or not _names()["secret"].isdisjoint(every)


def _has(words: Sequence[str], table: str) -> bool:
    """Whether a part of one of ``words`` is in ``table``."""
    return any(part in word for word in words for part in _names()[table])


def _ends_with(word: str, table: str) -> bool:
    """Whether ``word`` is in ``table``; of Chinese, which has no spaces, its end."""
    names = _names()[table]
    return word in names or (not word.isascii() and word.endswith(tuple(names)))


def _is_owned(noun: str, front: Sequence[str], parents: Sequence[str], value: str) -> bool:
    """Whether a token, a key or the like is a secret, by the words in ``front``, those above, and the ``value``."""
    owned = not _names()["owners"].isdisjoint((*front, *parents))
    if noun in ("token", "tokens"):
        return owned or (noun == "token" and _names()["of_text"].isdisjoint(front))
    if noun in ("key", "keys", "pat") and owned:
        return True
    if noun in ("key", "keys"):
        is_data = not _names()["of_data"].isdisjoint(front)
        return not is_data and (not _is_words(value) if front else _RANDOM.search(value, 0, LONGEST_KEY) is not None)
    if noun in _names()["pairs"]:
        return not _is_words(value)
    if noun in _names()["passes"]:
        return (owned or not _is_words(value)) and not value.startswith(("/", "~", "."))
    return False


def _is_words(value: str) -> bool:
    """Whether ``value`` is words and short numbers; a longer one is not looked at, as a line may hold thousands."""
    return len(value) <= LONGEST_WORDS and _WORDS.fullmatch(value) is not None


@cache
def _names() -> dict[str, frozenset[str]]:
    table = read_table(Path(__file__).parent / "secret_names.toml")
    return {name: frozenset(words) for name, words in table.items()}


@cache
def _words(name: str) -> tuple[list[str], ...]:
    """The words of each part of a name, in lower case."""
    name = _TWO_WORDS.sub(lambda match: "".join(filter(None, match.groups())).lower(), name[-512:])
    return tuple([word.lower() for word in _WORD.findall(part)] for part in name.split("."))


def _masked(match: regex.Match[str]) -> str:
    """The text of ``match`` with its group ``secret`` masked, or all of it where it has none."""
    parts, begin = [], match.start()
    for start, end in match.spans("secret") if "secret" in match.re.groupindex else [match.span()]:
        secret = match.string[start:end]
        parts += [match.string[begin:start], secret if MASKED.fullmatch(secret) else mask(secret)]
        begin = end
    return "".join((*parts, match.string[begin : match.end()]))


def _without_password(match: regex.Match[str]) -> str:
    user, password = next((match[i], match[i + 1]) for i in (1, 3, 5) if match[i + 1] is not None)
    secret, name = password[:-1], user[:-1]
    if secret in _NO_PASSWORDS:
        return match[0] if not name or MASKED.fullmatch(name) else f"{mask(name)}:{password}"
    return match[0] if MASKED.fullmatch(secret) else f"{user}{mask(secret)}@"


def _masked_whole(match: regex.Match[str]) -> str:
    """What is in quotes together with its name, with the whole value masked where its first word shows a secret."""
    return _masked(match) if is_secret(match["name"], match["first"]) else match[0]


def _masked_comparison(match: regex.Match[str]) -> str:
    """A comparison of a text with something whose name is that of a secret, without the text."""
    is_shown = MASKED.fullmatch(match[2]) or not is_secret(match["name"], match[2])
    return match[0] if is_shown else match[0].replace(match[2], mask(match[2]), 1)


def _mask_after(names: regex.Pattern[str], text: str, is_masked: Callable[[str, str], bool] = is_secret) -> str:
    """``text`` with each value masked after one of the ``names``, where ``is_masked`` of both."""
    parts, begin, done = [], 0, 0
    while match := names.search(text, begin):
        begin, name = match.end(), match["name"]
        value = _VALUE.match(text, begin, begin + LONGEST_LOOK) if _may_name(name, is_masked) else None
        is_list = value is not None and (value["open"] is not None or match[0].endswith("("))
        while value is not None:
            known = MASKED.fullmatch(value["value"]) is not None
            if not known and _is_value(value) and is_masked(name, value["value"]):
                value = value.re.match(text, value.start()) or value
                parts += [text[done : value.start("value")], mask(value["value"])]
                known, done = True, value.end("value")
            begin = value.end("value") if known else begin
            value = _MORE.match(text, value.end("value")) if is_list else None
    return "".join((*parts, text[done:]))


@lru_cache(maxsize=4096)
def _may_name(name: str, is_masked: Callable[[str, str], bool]) -> bool:
    """Whether some value of ``name`` is masked; a log repeats its names."""
    return is_masked(name, _ANY)


def _is_surely_secret(name: str, value: str) -> bool:
    """Whether the ``value`` is a secret by one word of its ``name``."""
    *parents, last = _words(name)
    return _is_strong(parents, last) and is_secret(name, value)


def _is_secret_word(name: str, value: str) -> bool:
    """Whether the ``value`` of ``name`` is a secret, and is neither words nor the name of another setting."""
    return not (value.isalpha() and value.isupper()) and not _is_words(value) and is_secret(name, value)


def _is_value(value: regex.Match[str]) -> bool:
    """Whether what was found after a name is a value, and not what kind of secret follows."""
    text = value["value"]
    is_about = value["key"] is not None and _ends_with((_words(value["key"])[-1] or [""])[-1], "about")
    return not is_about and text.lower() not in _NO_VALUES and any(map(str.isalnum, text))
