"""Secrets in texts of a log: masked before a text is kept, so that no output can show one.

A setting is masked by its name, any text by its shape. A mask shows whether two values differ: ``***`` and four
hexadecimal digits of the value's SHA-256. What is masked stays as it is when it is masked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import polars as pl
import regex

from logparse.lazy_regex import lazy_regex
from logparse.package_tables import read_table

_WORD = lazy_regex(r"[A-Z]++(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[0-9]+")
# Words that may be parts of a secret; shorter ones are parts of too many others.
_PARTS = lazy_regex(r"\w{3,}+")
MASKED = lazy_regex(r"\*\*\*[0-9a-f]{4}")
# Numbers, booleans, None and lists of them, special tokens such as <pad> and [MASK], and masks: no secrets.
_NUMBER = r"[-+]?(?:[0-9][0-9_,]*+\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?[%a-zA-Z]?"
_ITEM = rf"(?:{_NUMBER}|(?i:true|false|none|null|nan|inf|auto|default|yes|no|on|off)|<[^<>]*+>|\[[A-Z_]++\])"
_PLAIN = lazy_regex(rf"[\s\[\](){{}}'\"]*+(?:{_ITEM}(?:[\s,'\"\])}}]++|$))*+|\*\*\*[0-9a-f]{{4}}")
_DIGITS = lazy_regex(r"[0-9]{4,}+")
_LOWER_PARTS = lazy_regex(r"[\s\[\]'\",a-z_.:/-]*+")


_SHAPES = lazy_regex(
    r"(?<![\w-])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{8,}+"
    r"|sk-(?=[\w-]{0,64}[A-Z0-9])[\w-]{8,}+"
    r"|hf_(?=[a-z]{0,64}[A-Z0-9])[A-Za-z0-9]{8,}+"
    r"|gh[pousr]_[A-Za-z0-9]{8,}+|github_pat_\w{8,}+|glpat-[\w-]{8,}+|xox[a-z]-[\w-]{8,}+|AIza[\w-]{16,}+"
    r"|eyJ[\w-]{4,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"
    r")"
)
# Between the words of a command, as a line or as a printed list.
_BREAK = r"[\"']?,?\s{1,3}[\"']?"
# What follows these words up to the end of the group.
_AFTER = lazy_regex(
    r"(?<![\w-])((?i:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest))\s{1,3})([\w.~+/=-]++)"
    r"|(?<![\w-])((?i:bearer)\s{1,3})(?=[a-z]{0,64}+[^a-z\s])([\w.~+/=-]{6,}+)"
    r"|(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)([^-]++)"
    r"|((?i:[?&](?:sig|signature|x-(?:amz|goog|oss)-(?:signature|credential|security-token))=))([^&\s\"']++)"
    r"|(hooks\.slack\.com/services/)([\w/]++)"
    # Passwords in flags of commands; -u of containers takes numbers.
    rf"|(?<![\w-])(sshpass(?:{_BREAK}-[^p\s\"'][^\s\"']{{0,64}}+)*+{_BREAK}-p(?:{_BREAK}|[\"']?))([^\s\"',]++)"
    rf"|(?<![\w-])((?:-[uU]|--(?:proxy-)?user)(?:=[\"']?|{_BREAK})(?!\d++:\d)[^\s:\"',/=]{{1,128}}+:)(?!//)([^\s\"',]++)"
    rf"|(?<![\w-])((?:mysql|mariadb)\w{{0,16}}+(?>[^|;&\n]{{0,128}}?[\s\"']-p)[\"']?)(?=[^\s\"',-])([^\s\"',]++)"
)
_IN_URL = lazy_regex(
    r"(?<=://)([^\s/@:'\"]{0,256}+:)(?![0-9]{1,5}+/)([^\s'\"@]{1,512}+@(?:[^\s/@'\"]{0,512}+@)*+)"
    r"|(?<=://)()([^\s/@:'\"]{16,512}+@)"
    r"|(?<![\w.+/-])(\w[\w.+-]{0,64}+:)([^\s:@/'\"]{1,256}+@)(?=[\w-]{1,64}+(?:\.\w|:\d))"
)
_NAME = r"([A-Za-z_][\w.-]{0,128}+)"
_ASSIGNED = lazy_regex(rf"(?<![\w.])-{{0,2}}+{_NAME}\\?[\"']?\]?+\s{{0,3}}+[:=]\s{{0,3}}+")
_FLAG = lazy_regex(rf"(?<![\w-])--?{_NAME}[\"']?,?\s{{1,3}}+(?!\\?[\"']?-)")
_VALUE = lazy_regex(r"(?|\\?\"([^\"\\]++)|\\?'([^'\\]++)|([^\s\"',;&|)}\]\\]++))")
# What a text holds, in lower case, that any of the patterns above can match; looked for in a column at once.
_TRIGGERS = (
    *("akia", "asia", "aroa", "aida", "sk-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat"),
    *("xox", "aiza", "eyj", "bearer", "private key", "sig=", "signature=", "slack.com", "@", "token", "key", "secret"),
    *("pass", "pwd", "cred", "auth", "cookie", "mysql", "mariadb", "-u"),
)
_TRIGGER = f"(?i){'|'.join(regex.escape(trigger, special_only=True) for trigger in _TRIGGERS)}"


def mask(value: str) -> str:
    """What is shown in place of a secret; of two that differ two masks that differ."""
    return f"***{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}"


def mask_setting(name: str, value: str) -> str:
    """``value``, masked where ``name`` or its own shape makes it a secret."""
    return mask(value) if is_secret(name, value) else mask_text(value)


def mask_text(text: str) -> str:
    """``text`` with each secret in it masked that its shape or the name in front of it shows."""
    lowered = text.lower()
    if not any(trigger in lowered for trigger in _TRIGGERS):
        return text
    text = _SHAPES.sub(lambda match: mask(match[0]), text)
    text = _IN_URL.sub(_without_password, text)
    text = _AFTER.sub(_after, text)
    return _mask_after(_FLAG, _mask_after(_ASSIGNED, text))


def secret_words(lines: pl.DataFrame) -> frozenset[str]:
    """The words of the ``text`` of ``lines`` that are in no line once its secrets are masked."""
    suspects = lines.filter(pl.col("text").str.contains(_TRIGGER))["text"].to_list()
    masked = {text: mask_text(text) for text in suspects}
    changed = {text: shown for text, shown in masked.items() if text != shown}
    shown = {word for text in changed.values() for word in _PARTS.findall(MASKED.sub(" ", text))}
    return frozenset(word for text in changed for word in _PARTS.findall(text)) - shown


def hide(text: str, secrets: Collection[str]) -> str:
    """``text`` with its secrets masked, and every word that is a part of one of ``secrets``."""

    def shown(word: regex.Match[str]) -> str:
        return mask(word[0]) if any(word[0] in secret for secret in secrets) else word[0]

    text = mask_text(text)
    return _PARTS.sub(shown, text) if secrets else text


def mask_settings(settings: pl.DataFrame) -> pl.DataFrame:
    """A frame of settings (``name``, ``value`` and others) without secrets."""
    suspects = set(settings.filter(_suspect())["name", "value"].iter_rows())
    masks = [(name, value, mask_setting(name, value)) for name, value in suspects]
    changed = [row for row in masks if row[1] != row[2]]
    if not changed:
        return settings
    schema = {"name": pl.String, "value": pl.String, "masked": pl.String}
    masked = pl.DataFrame(changed, schema=schema, orient="row")
    joined = settings.join(masked, on=["name", "value"], how="left", maintain_order="left")
    return joined.with_columns(value=pl.coalesce("masked", "value")).select(settings.columns)


def masked_settings(frames: Iterable[pl.DataFrame]) -> int:
    """How many settings of ``frames`` hold a mask; one that is printed several times counts once."""
    names = (frame.filter(pl.col("value").str.contains(MASKED.pattern))["name"] for frame in frames)
    return len(set().union(*(series.to_list() for series in names)))


def _suspect() -> pl.Expr:
    return pl.col("name").str.contains(_TRIGGER) | pl.col("value").str.contains(_TRIGGER)


def is_secret(name: str, value: str) -> bool:
    """Whether the setting ``name`` holds a secret, by its name, and ``value`` can be one."""
    *parents, last = _words(name)
    if last and last[-1] in _names()["about"]:
        return False
    if not _names()["password"].isdisjoint(last) and _DIGITS.fullmatch(value):
        return True
    if _PLAIN.fullmatch(value):
        return False
    if not _names()["secret"].isdisjoint(last) or any(
        len(parent) == 1 and parent[0] in _names()["secret"] for parent in parents
    ):
        return True
    while len(last) > 1 and last[-1] in _names()["of_value"]:
        last = last[:-1]
    *front, noun = last or ("",)
    return _is_owned(noun, front, value)


def _is_owned(noun: str, front: list[str], value: str) -> bool:
    """Whether a token, a key or the like is a secret, by the words in ``front`` and the ``value``."""
    owned = not _names()["owners"].isdisjoint(front)
    if noun in ("token", "tokens"):
        return owned or (noun == "token" and _names()["of_text"].isdisjoint(front))
    if noun in ("key", "keys"):
        return owned or not _LOWER_PARTS.fullmatch(value)
    if noun in ("pass", "pwd"):
        return (owned or not front) and not value.startswith(("/", "~", "."))
    return False


@cache
def _names() -> dict[str, frozenset[str]]:
    table = read_table(Path(__file__).parent / "secret_names.toml")
    return {name: frozenset(words) for name, words in table.items()}


@cache
def _words(name: str) -> tuple[list[str], ...]:
    """The words of each part of a name, in lower case."""
    return tuple([word.lower() for word in _WORD.findall(part)] for part in name[-512:].split("."))


def _without_password(match: regex.Match[str]) -> str:
    user, password = next((match[i], match[i + 1]) for i in (1, 3, 5) if match[i + 1] is not None)
    secret = password[:-1]
    return match[0] if MASKED.fullmatch(secret) else f"{user}{mask(secret)}@"


def _after(match: regex.Match[str]) -> str:
    front, secret = next((match[i], match[i + 1]) for i in range(1, 17, 2) if match[i] is not None)
    return match[0] if MASKED.match(secret) else f"{front}{mask(secret)}"


def _mask_after(names: regex.Pattern[str], text: str) -> str:
    """``text`` with the value masked after each of the ``names`` of a secret."""
    parts, begin = [], 0
    while match := names.search(text, begin):
        value = _VALUE.match(text, match.end()) if is_secret(match[1], "Any1") else None
        if value and _is_value(value[1]) and is_secret(match[1], value[1]):
            parts += [text[begin : value.start(1)], mask(value[1])]
            begin = value.end(1)
        else:
            parts.append(text[begin : match.end()])
            begin = match.end()
    return "".join((*parts, text[begin:]))


def _is_value(text: str) -> bool:
    """Whether a text after a name is a value that is not masked yet, and not what kind of secret follows."""
    return not MASKED.match(text) and text.lower() not in ("bearer", "basic", "digest", "token")
