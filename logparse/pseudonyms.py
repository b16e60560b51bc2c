"""Stable pseudonyms for hosts, users, paths, runs and jobs, so that an answer can be shown outside.

A pseudonym is the kind and eight hexadecimal digits of a keyed hash (HMAC-SHA-256) of the name: whoever has the key can
check a guess, nobody else can. With one key a name has one pseudonym in every run. Which names there are is data:
``identities.toml``, and what a log prints of itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
import regex

from logparse.decode.read_run import ParsedLog
from logparse.failures.scan import LONGEST_QUOTE
from logparse.formats._base import LogFormat
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace
from logparse.package_tables import read_table
from logparse.texts import texts_of

DIGITS = 8
# Kinds of settings whose values are paths.
_PLACES = ("path", "folder")
Change = Callable[[str], str]
# The type of what a log is read by: no text of it is of the log.
FORMAT = LogFormat
_SPLIT = lazy_regex(r"[\s,;'\"\[\](){}=]++")
# Places that are the same on every machine.
_SYSTEM = lazy_regex(
    r"/(?:(?:dev|proc|sys|bin|lib|lib64|etc|usr/(?!local/)\w+|usr/local/(?:Ascend|cuda[\w.-]*))(?:/|$)|(?:tmp|var|usr)/?$)"
)
# The part of a path from which on it is that of a public library.
_LIBRARY = lazy_regex(r"/(?:(?:site|dist)-packages|lib/python\d[\d.]*)/")
_ENDING = lazy_regex(r"(?:\.[A-Za-z]\w{0,7}){1,2}$")
_URL = r"[a-z][a-z0-9+]{1,9}://[^\s'\"<>()\[\]{}|,;]+"
_PART = r"/[\w.@+%=~-]+"
# After "<" one part alone is a sign such as </s>.
# What is data: a relative path of code, and words such as train/loss, are of no user.
_DATA = (
    r"\.(?:bin|idx|pt|pth|ckpt|safetensors|model|jsonl?|ya?ml|txt|log|csv|parquet|arrow|np[yz]|h5|tar|gz|zip|zst)(?!\w)"
)
_PATH = (
    rf"(?<![\w.:/~<-])(?:~(?:[A-Za-z_][\w.-]{{0,31}})?|\.{{1,2}})?{_PART}(?:/[\w.@+%=~-]*)*|(?<=<)(?:{_PART}){{2,}}"
    rf"|(?<!\w)[A-Za-z]:\\[^\s'\"<>|]+|(?<![\w\\])\\{{2,4}}[A-Za-z][\w.-]{{2,63}}\\[^\s'\"<>|]+"
    rf"|(?<![\w.:/~@+%=-])\w[\w.-]{{0,63}}+(?:/[\w-][\w.-]{{0,63}}+){{0,8}}(?=/)(?:/[\w.-]{{1,64}}?){_DATA}"
)
_PLACE = lazy_regex(rf"(?P<url>{_URL})|(?P<path>{_PATH})")
_LAST = lazy_regex(r"[\w.-]{3,}$")
_PSEUDONYM = lazy_regex(r"(?:path|file|host|user|run|job)-[0-9a-f]{8}")
_WORD = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@dataclass(frozen=True)
class Pseudonyms:
    """The pseudonyms that ``key`` makes."""

    key: bytes

    def of(self, kind: str, name: str) -> str:
        """That of ``name``, such as ``host-3f9a2c71``; of a name that identifies nothing the name."""
        if name.lower() in _common() or not name.strip() or _PSEUDONYM.search(name):
            return name
        text = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
        return f"{kind}-{hmac.new(self.key, text, hashlib.sha256).hexdigest()[:DIGITS]}"

    def path(self, path: str) -> str:
        """``/path-3f9a2c71/file-8b21c0de.log`` of a file; what is the same on every machine stays."""
        if _PSEUDONYM.search(path) or _SYSTEM.match(path):
            return path
        if library := _LIBRARY.search(path):
            return f"/{self.of('path', path[: library.start()])}{path[library.start() :]}"
        return self.own_path(path)

    def own_path(self, path: str) -> str:
        """The same of a path that is the user's own, wherever it is."""
        folder, sign, name = path.replace("\\", "/").rstrip("/").rpartition("/")
        root = "/" if path.startswith(("/", "~", ".")) or ":" in folder else ""
        return f"{root if sign else ''}{self.of('path', folder)}{'/' if folder else ''}{self.file(name)}"

    def file(self, name: str) -> str:
        """That of the name of a file, with its ending."""
        ending = _ENDING.search(name)
        stem = name[: ending.start()] if ending else name
        return f"{self.of('file', stem)}{ending[0] if ending else ''}"

    def url(self, url: str) -> str:
        """The scheme, and pseudonyms of the host and the path."""
        scheme, _, rest = url.partition("://")
        host, sign, path = rest.partition("/")
        shown = self.of("host", host.rpartition("@")[2])
        return f"{scheme}://{shown}{self.path(f'/{path}') if sign and path else sign}"

    def place(self, match: regex.Match[str]) -> str:
        """That of a URL or a path in a text, without the sign that ends the sentence."""
        text = match[0].rstrip(".,:")
        return f"{self.url(text) if match['url'] else self.path(text)}{match[0][len(text) :]}"


def anonymiser(log: ParsedLog, pseudonyms: Pseudonyms) -> Change:
    """What puts pseudonyms into a text about ``log``: of all names that the log prints, and of what looks like one."""
    return change_of(_names_in(log), log.sources, log.name, pseudonyms)


def change_of(names: Mapping[str, str], files: Iterable[str], run: str, pseudonyms: Pseudonyms) -> Change:
    """What puts pseudonyms into a text: of ``names``, by their kinds, of ``files``, of the ``run``, and of places."""
    known = {name: pseudonyms.of(kind, name) for name, kind in names.items()}
    known |= {name: pseudonyms.own_path(name) for file in files for name in (file, PurePosixPath(file).name)}
    # What is an ordinary word is replaced where it is all of a text, or where its place shows what it is.
    inside = [name for name in known if len(name) > 3 and not (name.isalpha() and names.get(name) in (None, "run"))]
    every = "|".join(map(regex.escape, sorted(inside, key=len, reverse=True)))
    words = regex.compile(rf"(?<![\w./-])(?:{every})(?![\w-])") if every else None
    base, sign, number = run.rpartition("#") if regex.search(r"#\d+$", run) else (run, "", "")
    exact = {**known, run: f"{pseudonyms.of('run', base)}{sign}{number}"}

    @cache
    def anonymous(text: str) -> str:
        if text in exact:
            return exact[text]
        # A quoted line may end within a name.
        last = _LAST.search(text) if len(text) >= LONGEST_QUOTE else None
        if last and (whole := next((name for name in inside if name.startswith(last[0])), None)):
            text = f"{text[: last.start()]}{known[whole]}"
        text = words.sub(lambda match: known[match[0]], text) if words else text
        text = _PLACE.sub(pseudonyms.place, text)
        for kind, pattern in _shapes():
            text = pattern.sub(partial(_renamed, kind, pseudonyms), text)
        return text

    return anonymous


def anonymous_log(log: ParsedLog, pseudonyms: Pseudonyms) -> ParsedLog:
    """``log`` with pseudonyms in the settings whose names show what their values are."""
    others = tuple((fmt, anonymous_settings(frame, pseudonyms)) for fmt, frame in log.other_settings)
    return replace(log, settings=anonymous_settings(log.settings, pseudonyms), other_settings=others)


def anonymous_settings(settings: pl.DataFrame, pseudonyms: Pseudonyms) -> pl.DataFrame:
    """``settings`` with pseudonyms for the values that their names show to be such."""
    pairs = settings.select("name", "value").unique().iter_rows()
    rows = [(name, value, _value(kind, value, pseudonyms)) for name, value in pairs if (kind := kind_of(name))]
    shown = pl.DataFrame(
        rows,
        schema=["name", "value", "shown"],
        schema_overrides=dict.fromkeys(("name", "value", "shown"), pl.String),
        orient="row",
    )
    joined = settings.join(shown, on=["name", "value"], how="left", maintain_order="left")
    return joined.with_columns(value=pl.coalesce("shown", "value")).select(settings.columns)


def _value(kind: str, value: str, pseudonyms: Pseudonyms) -> str:
    if kind not in _PLACES:
        names = [name for name in _SPLIT.split(value) if _is_name(name, kind)]
        return _replaced(value, {name: pseudonyms.of(kind, name) for name in names})
    names = [name for name in _SPLIT.split(value) if "/" in name and "://" not in name]
    # The setting of a folder may hold one word.
    alone = [value] if kind == "folder" and regex.fullmatch(r"[A-Za-z_][\w.-]+", value) else []
    return _replaced(value, {name: pseudonyms.path(name) for name in (*names, *alone)})


def _replaced(text: str, new: Mapping[str, str]) -> str:
    for name in sorted(new, key=len, reverse=True):
        text = text.replace(name, new[name])
    return text


@cache
def kind_of(name: str) -> str | None:
    """The kind of what a setting called ``name`` identifies; None where it identifies nothing."""
    last = "_".join(word.lower() for word in _WORD.findall(name.rpartition(".")[2].rstrip("0123456789_")))
    kinds = ((kind, end) for kind, ends in _table()["names"].items() for end in ends)
    fitting = [(len(end), kind) for kind, end in kinds if last == end or last.endswith(f"_{end}")]
    return max(fitting)[1] if fitting else None


def _names_in(log: ParsedLog) -> dict[str, str]:
    """Every name that ``log`` prints of a host, a user, a run or a job, and its kind."""
    names: dict[str, str] = {}
    settings = [log.settings, *(frame for _, frame in log.other_settings)]
    for name, value in (row for frame in settings for row in frame.select("name", "value").iter_rows()):
        kind = kind_of(name)
        if kind not in (None, *_PLACES):
            names |= {one: kind for one in _SPLIT.split(value) if _is_name(one, str(kind))}
    hosts = [host for hit in log.hits if (host := hit.host)]
    names |= {host: "host" for host in (*hosts, *_hosts_of(log.ending)) if _is_name(host, "host")}
    values = (text for frame in settings for text in frame["value"].unique().to_list())
    for text in (*values, *log.sources, *texts_of(log.ending), *texts_of(log.notes)):
        names |= {
            m["name"]: kind for kind, pattern in _shapes() for m in pattern.finditer(text) if _is_name(m["name"], kind)
        }
    return names


def _hosts_of(ending: Any) -> Iterable[str]:
    if ending is None:
        return ()
    parts = (ending, *ending.suspects, *ending.attempts, *(reason for one in ending.suspects for reason in one.reasons))
    return [*(part.host for part in parts if part.host), *ending.same_hosts, *([ending.peer] if ending.peer else [])]


def _is_name(text: str, kind: str) -> bool:
    """Whether ``text`` can be the name of one of its ``kind``: no number, but for a job, and no path."""
    plain = text.lower() in _common() or len(text) < 2 or "/" in text
    return not plain and (
        kind == "job" or any(map(str.isalpha, text)) or regex.fullmatch(r"\d+(?:\.\d+){3}(?::\d+)?", text) is not None
    )


def _renamed(kind: str, pseudonyms: Pseudonyms, match: regex.Match[str]) -> str:
    """The text of ``match`` with a pseudonym for its group ``name``."""
    begin, end = (place - match.start() for place in match.span("name"))
    return f"{match[0][:begin]}{pseudonyms.of(kind, match['name'])}{match[0][end:]}"


@cache
def _shapes() -> tuple[tuple[str, regex.Pattern[str]], ...]:
    return tuple((shape["kind"], regex.compile(shape["pattern"])) for shape in _table()["shape"])


@cache
def _common() -> frozenset[str]:
    return frozenset(_table()["common"])


@cache
def _table() -> dict[str, Any]:
    return read_table(Path(__file__).parent / "identities.toml")
