"""The lines of a block that show how a run ended: found by literals, read by the first signature that fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import polars as pl
import regex

from logparse.failures.carried import carried_by
from logparse.failures.details import detail_of, details_for
from logparse.failures.frames import LONGEST, Frame, frames_above
from logparse.failures.line_kinds import LONGEST_REMEMBERED, MOST_KINDS, kind_of
from logparse.failures.signatures import (
    DATA_CODE,
    JUDGED,
    Meaning,
    Signature,
    by_words,
    exit_code,
    meaning_of,
    signatures,
)
from logparse.failures.silence import CLOCK_AT, same_zone, silent_seconds
from logparse.inputs.blocks import TextBlock
from logparse.inputs.cut_messages import cut_lines, joined_lines, message_at, whole_messages, wrap_width
from logparse.inputs.writers import (
    OF_WORKER,
    Line,
    clock_of,
    rank_before,
    read_prefixes,
    without_notebook,
    writer_of,
)
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, field, replace
from logparse.masking import mask_text

# Characters of a line that is quoted, and at each end of a long line in which signs of a failure are looked for.
LONGEST_QUOTE, LONGEST_END = 240, 4096
# Lines of a block that are read; of more, as where every step warns, the first and the last half.
MOST_LINES = 4000
# An exception that does not say what was wrong; the line of code above it does, at most so many lines before.
BARE, FAR = "AssertionError", 20
# The type of an exception at the end of what its signature matches.
_KIND = lazy_regex(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*[a-z]\w*(?:\(\w+\))?(?: \(RANK \d+\))?:? ?$")
# An exception whose message begins on a later line, at most so many lines below.
_HEADING = lazy_regex(
    r"(?:Error|Exception)(?:: (?:Graph execution error|In user code|Critical error when building pipeline))?:\s*$"
    r"|\(look up to see its traceback\):\s*$"
)
# Paddle prints where the user's code made an operator, and then what failed.
_OF_USER = lazy_regex(r"Error: In user code:\s*$")
_NO_MESSAGE = lazy_regex(r"(?:Error|Exception): *$")
# What is no part of a message below an exception.
_OF_TRACEBACK = lazy_regex(r"Traceback|File |During handling|The above exception|[│╭╰]")
BELOW_HEADING, LONGEST_PROGRAM = 3, 1000
# An exception after whose name another process prints a line of its traceback: the message is at most FAR lines below.
# Or it prints one of its own there.
_TORN = lazy_regex(r"(?:Error|Exception):\s*(?:File \"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?=[/'\"\[{]))")
# Lines between the beginning of a traceback and its exception, at most.
LONGEST_TRACEBACK = 100
# An exception that only carries that of another process, whose traceback is printed below it.
_CARRIES = lazy_regex(
    r"RayTaskError|Caught \w+ in |RemoteTraceback|DeadlockDetectedException|ProcessRaisedException|_Remote\w*Error"
    r"|failed to import on the worker|CheckpointException ranks:|error raised in its creation task"
)
# Paddle and MindSpore print below an exception, under a heading of its own, what failed in their native code.
_SUMMARY = lazy_regex(r"^\W*(?:(?:[A-Z]\w+ )?Error Message(?: Summary)?|Python Call Stack):\s*$")
# Exceptions that a program raises by what it does with its own values.
_OF_CODE = lazy_regex(r"\b(?:Index|Key|Type|Attribute|Name|UnboundLocal|Assertion)Error\b")
# Roles of what such an exception may carry.
CARRIED = ("root", "consequence")
# Roles of lines that are read where they are cut in two; characters of a mark that is looked for there.
_CAUSES, LEAST_CUT = ("root", "explains", "finding"), 12
# Remedies of an exception that a frame of its traceback may know better.
_VAGUE = frozenset(
    ("exception", "missing_key", "versions_of_code", "shapes", "unsupported", "count_zero", "none_value", "types")
)
# Families of what ends a whole job.
OF_WHOLE_JOBS = frozenset(("cancelled", "preempted", "time_limit"))
# Families of what stops a run from outside: it may have hung before.
_STOPPED = OF_WHOLE_JOBS | {"signal"}
# The remedy of code that Python cannot read: the traceback ends where it was imported.
SYNTAX = "syntax"
# Messages that are the same, by so many characters: of more than these the calls are not read.
SAME_CHARACTERS, MOST_SAME = 60, 8
# Lines above a cause that may say what it is about, and those with the frames of its traceback.
LINES_ABOVE, LINES_OF_FRAMES = 12, 60
# Groups of patterns that a Hit has attributes for, and the digits of a number that is no rank: HCCL's 4294967295.
_ATTRIBUTES = frozenset(("code", "sig", "rank", "task", "local_rank", "host", "absent", "reason", "says"))
NO_RANK = 8
_RANKS = lazy_regex(r"\d+")
# Ranks that a message itself names as the one that prints it: c10d "[Rank 1]", Megatron "Rank 3: found NaN", torch_npu
# "(PID:7, Device:3, RankID:3)". A rank inside a sentence is another one.
_OWN_RANK = lazy_regex(
    r"\[(?:PG (?:ID )?[^\]]{0,80} )?Rank (?P<rank>\d+)\]|(?:^|(?:Error|Exception): )Rank (?P<rank>\d+)(?::|, node )"
    r"|\bRankID:(?P<rank>\d+)\)"
)
# Ray names the process that raised an exception or died; lines below, its driver prints the exception.
_RAISED_AT = lazy_regex(
    r"\bray::(?P<call>[\w.]+).{0,200}?\(pid=(?P<pid>\d+), ip=(?P<host>[\w.:-]+)(?:.{0,200}?\[rank=(?P<rank>\d+)\])?"
    r"|Worker IP address: (?P<host>[\w.:-]+) .{0,60}?Worker PID: (?P<pid>\d+)"
)
# The field of a hit with the process of Ray that raised it, and what that was called for.
PROCESS = "process"
# DDP prints the rank below its exception; lines between them, at most.
BELOW_DDP = 6
# torch_npu prints the rank in the line above the messages of CANN; lines between them, at most.
BELOW_HEAD = 4
# The error file of torchelastic, or a traceback whose line breaks are escaped.
_LISTED = lazy_regex(
    r"\"message\": \"(?P<what>(?:\w+\.)*\w+(?:Error|Exception)\b(?:[^\"\\]|\\.)*)\"?"
    r"|Traceback \(most recent call last\):.*\\n(?P<what>(?:\w+\.)*\w+(?:Error|Exception)\b(?:(?!\\n).)*)"
)
# A rank that gathers the exceptions of others prints the rank above each traceback.
_GATHERED = lazy_regex(r"Traceback \(most recent call last\): \(RANK (?P<rank>\d+)\)")
# Where a bar of tqdm or a part before a carriage return ends: what a process prints next has no line of its own.
BAR_END = lazy_regex(
    r"\r|(?<!\d)(?P<count>\d{1,9})[^\s\[]{0,24} \[\d+:\d\d(?::\d\d)?[<,](?:[^\[\]\r]|\[[^\[\]\r]{0,200}\]){0,300}+\]"
)
# What glog and TensorFlow print as information or a warning.
_MILD = lazy_regex(r"(?:^|[\s\]])\[?[IW]\d{3,4} \d\d:\d\d:\d\d|: [IW] \S+\.(?:cc|cpp|h|cu):\d+\]")
# What Python's module of warnings prints of a library, whatever the kind of the warning is called.
_WARNED = lazy_regex(r"/(?:site|dist)-packages/\S+\.py:\d+: [A-Z]\w*: ")
# The code of a message: a reader looks it up.
_CODE = lazy_regex(r"\bE(?:[A-Z0-9]\d{4}|RR\d{5})\b")
# A table of Markdown and a line of source code, also in a box of rich, speak of errors; nobody prints them as one.
_PROSE = lazy_regex(
    r"^\s*(?:\|(?! NVIDIA-SMI).*\|\s*$|│\s*(?:❱\s*)?\d+ │|#(?!#{1,5} [A-Z0-9])|(?:raise|except|class|def|from|import)\b"
    r"|(?:if\b.*|else): raise\b)"
)


@dataclass(frozen=True)
class Hit:
    """One line that a signature fits. ``text`` is masked and short; ``clock`` is in seconds, None where unknown.

    ``absent`` are ranks that it waits for; ``caught`` says whether Python ignored an exception or a logger printed it.
    ``fields`` are other named groups of the pattern. ``after_bar`` says whether it follows the last step on its line.
    ``detail`` and ``figures`` are what the details of its failure find. ``frames`` are calls of the traceback above.
    ``silent_seconds`` is how long nothing was printed before a run was stopped.
    """

    source: str
    line: int
    text: str
    meaning: Meaning
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    code: int | None = None
    clock: float | None = None
    absent: tuple[int, ...] = ()
    caught: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    after_bar: bool = False
    detail: str | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()
    silent_seconds: float | None = None

    @property
    def role(self) -> str:
        """Its role, see ``rules/README.md``."""
        return self.meaning.role

    @property
    def family(self) -> str:
        """What failed."""
        return self.meaning.family

    def has(self, *traits: str) -> bool:
        """Whether its signature has any of the ``traits``, see ``rules/README.md``."""
        return not set(traits).isdisjoint(self.meaning.traits)


def find_hits(block: TextBlock) -> list[Hit]:
    """Every line of ``block`` that a signature fits, in order."""
    if not block.count:
        return []
    lines = block.matching(_find(), literals=_marks())
    if len(lines) > MOST_LINES:
        lines = pl.concat([lines.head(MOST_LINES // 2), lines.tail(MOST_LINES // 2)])
    numbered = lines.select("line_number", "text").iter_rows()
    read = (_read_of_host(block, number, text) for number, text in numbered)
    width = wrap_width(block)
    whole = _with_cut(block, _with_torn(block, [hit for hit in read if hit is not None], width))
    found = _with_rank_of_ddp(_with_process_above(whole))
    judged = _without_handled(list(_judged_by_context(_with_rank_above(found))))
    complete = [_with_message(hit, block) for hit in _without_summarized(judged, block)]
    return [_with_detail(hit, block, width) for hit in _with_lines_above(complete, block)]


def _with_lines_above(hits: Sequence[Hit], block: TextBlock) -> Iterator[Hit]:
    """``hits`` with the calls that led to them, and the silence before a stop; of many that are the same the first."""
    known = Counter[tuple[str, str]]()
    for hit in hits:
        shape = hit.meaning.signature, _RANKS.sub("", hit.text)[:SAME_CHARACTERS]
        known[shape] += 1
        if hit.role not in JUDGED or known[shape] > MOST_SAME:
            yield hit
            continue
        at = hit.line - block.first
        above, raised = block.texts[max(0, at - LONGEST) : at].to_list(), block.texts[at]
        if carried := carried_by(raised):
            above, raised = list(carried.frames), carried.raised
        below = block.texts[at + 1 : at + 1 + LONGEST].to_list()
        frames = () if hit.meaning.remedy == SYNTAX else frames_above(above, raised, below)
        hit = replace(hit, frames=frames)
        if hit.clock is not None and hit.family in _STOPPED:
            scheduled = hit.family in OF_WHOLE_JOBS and not same_zone(block.stamped(at + 1, at + LONGEST), hit.clock)
            silent = silent_seconds(block.stamped(max(0, at - LONGEST), at), hit.clock, scheduled)
            hit = replace(hit, silent_seconds=silent)
        yield hit


def _with_torn(block: TextBlock, hits: Sequence[Hit], width: int | None) -> list[Hit]:
    """``hits`` with those that only a line and its rest show, which a terminal of ``width`` columns parted."""
    if width is None:
        return list(hits)
    vague = {hit.line for hit in hits if hit.meaning.general}
    torn: dict[int, Hit] = {}
    for number, text, rest in joined_lines(block, _find(), _marks(), width):
        whole = text + rest
        rules = rules_for(whole)
        if not _reaches(rules, whole, len(rest), number in vague):
            continue
        if (hit := _read_part(rules, whole)) is not None:
            torn[number] = replace(hit, source=block.source, line=number)
    # The rest of a message that was read whole is none of its own.
    rests = {(line + 1, hit.meaning.signature) for line, hit in torn.items()}
    kept = [hit for hit in hits if hit.line not in torn and (hit.line, hit.meaning.signature) not in rests]
    return sorted((*kept, *torn.values()), key=lambda hit: hit.line)


def _with_cut(block: TextBlock, hits: list[Hit]) -> list[Hit]:
    """``hits`` with those of a pasted log whose marks are cut in two, at any width."""
    if not block.is_pasted:
        return hits
    known = {hit.line for hit in hits if not hit.meaning.general}
    numbers = [number for number in cut_lines(block, _long_marks()) if number not in known]
    cut = {number: hit for number in numbers if (hit := _read_cut(block, number)) is not None}
    return sorted((*(hit for hit in hits if hit.line not in cut), *cut.values()), key=lambda hit: hit.line)


def _read_cut(block: TextBlock, number: int) -> Hit | None:
    """What line ``number`` and its rest say, where a signature knows it."""
    texts = dict.fromkeys(whole_messages(block, number))
    read = (_read_part(_with_marks(kind_of(text)), text) for text in texts)
    hits = (replace(hit, source=block.source, line=number) for hit in read if hit is not None)
    return next((hit for hit in hits if hit.role in _CAUSES and not hit.meaning.general), None)


def _reaches(rules: Sequence[Signature], text: str, rest: int, vague: bool) -> bool:
    """Whether what a signature finds in ``text`` reaches into its last ``rest`` characters from before them.

    Where the line alone is ``vague``, it may lie in them.
    """
    bare = read_prefixes(_ends_of(text)).bare
    signature, match = _first(rules, bare) or (None, None)
    if signature is None or match is None or match.end() <= len(bare) - rest:
        return False
    return match.start() < len(bare) - rest or (vague and not signature.general)


def _with_message(hit: Hit, block: TextBlock) -> Hit:
    """An exception whose message goes on below its line with that; one that carries another as that."""
    at = hit.line - block.first
    printed, is_bare = block.texts[at], hit.has("exception")
    if hit.role == "root" and (carried := carried_by(printed)):
        printed = f"{carried.before or ''}{carried.raised}"
    elif is_bare and _NO_MESSAGE.search(hit.text):
        below = (read_prefixes(text).bare.strip() for text in block.texts[at + 1 : at + 1 + BELOW_HEADING])
        message = next((text for text in below if text), None)
        if message is None or message.startswith(("Traceback", "File ")):
            return hit
        printed = f"{printed.rstrip()} {message}"
    else:
        return _with_rest(hit, block, at) if is_bare or hit.role == "root" else hit
    whole = _read(hit.source, hit.line, printed)
    return replace(hit, text=whole.text, meaning=whole.meaning) if whole else hit


def _with_rest(hit: Hit, block: TextBlock, at: int) -> Hit:
    """An exception whose line ends with a colon, with the indented line of the same process below it."""
    first, *rest = block.texts[at : at + 2].to_list()
    if not rest or not first.rstrip().endswith(":") or writer_of(rest[0]) != writer_of(first):
        return hit
    bare = read_prefixes(rest[0]).bare
    if not rest[0][: len(rest[0]) - len(bare)].endswith("  ") or _OF_TRACEBACK.match(bare):
        return hit
    return replace(hit, text=f"{hit.text} {mask_text(bare.strip())}"[:LONGEST_QUOTE])


def _with_detail(hit: Hit, block: TextBlock, width: int | None) -> Hit:
    """``hit`` with the figures and names in its message that the next step needs."""
    entries = details_for(hit.meaning.remedy) if hit.role in JUDGED else ()
    if not entries:
        return hit
    text, below = message_at(block, hit.line, width)
    carried = carried_by(text)
    above = _lines_above(hit, block, LINES_ABOVE) if any(entry.above for entry in entries) else ""
    frames = _lines_above(hit, block, LINES_OF_FRAMES) if any(entry.frames for entry in entries) else ""
    if carried is not None:
        text, frames = carried.raised, " ".join(carried.frames)
    wrapped = tuple(map(_ends_of, whole_messages(block, hit.line))) if block.is_pasted else ()
    found = detail_of(hit.meaning.remedy, _ends_of(text), _ends_of(below), above, frames, wrapped, hit.frames)
    return hit if found is None else replace(hit, detail=found[0], figures=found[1])


def _lines_above(hit: Hit, block: TextBlock, count: int) -> str:
    at = hit.line - block.first
    return _ends_of(" ".join(block.texts[max(0, at - count) : at]))


def _read(source: str, number: int, whole: str) -> Hit | None:
    """What a line says, by the first signature that fits: errors are also printed after a bar, without a newline."""
    hit = _remembered_hit(whole) if len(whole) <= LONGEST_REMEMBERED else _hit_on(whole)
    return None if hit is None else replace(hit, source=source, line=number)


def _read_of_host(block: TextBlock, number: int, text: str) -> Hit | None:
    """What a line says after the host and the clock that tools put before it."""
    host, message = block.wrapping.host_of(text)
    hit = _read(block.source, number, message)
    if hit is None or (host is None and block.clocks is None):
        return hit
    at = number - block.first
    clock = hit.clock if hit.clock is not None else clock_of(block.stamped(at, at + 1)[0][:CLOCK_AT])
    return replace(hit, host=hit.host or host, clock=clock)


def _hit_on(whole: str) -> Hit | None:
    """The hit on a line, without its place: of the first part that one of its rules fits."""
    rules = rules_for(whole)
    for text, start, after_bar in _parts(whole, rules) if rules else ():
        hit = _read_part(rules, text)
        if hit is not None:
            return _with_bars(hit, whole, start, after_bar) if len(text) < len(whole) else hit
    return None


_remembered_hit = lru_cache(MOST_KINDS)(_hit_on)


def rules_for(text: str) -> Sequence[Signature]:
    """The signatures that may fit ``text``, or a part of it: of those of a kind that no hit is made of none."""
    kind = kind_of(text)
    return _rules_of_kind(kind) if len(text) <= 2 * LONGEST_END else _with_marks(kind)


def _with_marks(kind: str) -> list[Signature]:
    """The signatures of which lines of a ``kind`` may hold a mark."""
    marked = {at for mark, places in _places_of_marks().items() if mark in kind for at in places}
    return [rule for at, rule in enumerate(signatures()) if at in marked or (rule.find and rule.blurred.may_fit(kind))]


@cache
def _places_of_marks() -> dict[str, list[int]]:
    """The kind of each mark, and the places of its signatures."""
    places: dict[str, list[int]] = {}
    for at, signature in enumerate(signatures()):
        for mark in signature.marks:
            places.setdefault(kind_of(mark), []).append(at)
    return places


@lru_cache(MOST_KINDS)
def _rules_of_kind(kind: str) -> tuple[Signature, ...]:
    """The signatures that may fit lines of a ``kind``; none where a line of it is no hit whatever its digits are."""
    blurred = [(rule.blurred, rule) for rule in _with_marks(kind)]
    parts = {kind, *(text for text, _, _ in _parts(kind, [blur for blur, _ in blurred]))}
    opened = [one for part in parts if (one := _open(part)) is not None]
    texts = {text for one in opened for text in (one.line.bare, one.message, *one.message.split(r"\n"))}
    rules = tuple(rule for blur, rule in blurred if any(map(blur.search, texts)))
    if any(rule.blurred is not rule for rule in rules):
        return rules
    return rules if any(_read_part(rules, part) is not None for part in parts) else ()


def _parts(whole: str, rules: Collection[Signature]) -> Iterator[tuple[str, int, bool]]:
    """The parts of a line between bars that hold a mark of ``rules``, where each begins, and if it is after a bar."""
    ends = list(BAR_END.finditer(whole))
    starts = [0, *(end.end() for end in ends)]
    for at, (start, end) in enumerate(zip(starts, [*starts[1:], len(whole)], strict=True)):
        text = whole[start:end]
        if any(rule.may_fit(text) for rule in rules):
            yield text, start, _is_last(ends, at)


def _with_bars(hit: Hit, whole: str, start: int, after_bar: bool) -> Hit:
    """What the part of a line from ``start`` on says, with the rank, the host and the clock that are before it."""
    before = read_prefixes(_ends_of(whole))
    return replace(
        hit,
        rank=_first_number(hit.rank, rank_before(whole, start), before.rank),
        local_rank=_first_number(hit.local_rank, before.local_rank),
        host=hit.host or before.host,
        clock=hit.clock if hit.clock is not None else clock_of(_ends_of(whole)),
        after_bar=after_bar,
    )


def _is_last(ends: Sequence[regex.Match[str]], at: int) -> bool:
    """Whether a bar is before part ``at`` of a line, and none that is further comes after it."""
    before, after = ([end["count"] for end in some if end["count"]] for some in (ends[:at], ends[at:]))
    return bool(before) and all(count == before[-1] for count in after)


@dataclass(frozen=True)
class _Opened:
    """The text of a part of a line, what its prefixes say, and its message."""

    text: str
    line: Line
    message: str


def _open(whole: str) -> _Opened | None:
    """The message of a part of a line; None where it is code, or a warning of Python."""
    carried = carried_by(whole)
    text = _ends_of(whole if carried is None or carried.before is None else carried.before + carried.raised)
    line = read_prefixes(text)
    if _PROSE.match(line.bare) or _WARNED.search(text):
        return None
    listed = _LISTED.search(line.bare)
    return _Opened(text, line, listed["what"] if listed else line.bare)


def _read_part(rules: Sequence[Signature], whole: str) -> Hit | None:
    opened = _open(whole)
    if opened is None:
        return None
    found = _first(rules, opened.message)
    if found and found[0].role == "advice":
        # A record of an error may hold all its lines in one, the advice of the library with them.
        parts = (_first(rules, part) for part in opened.message.split(r"\n"))
        found = next((part for part in parts if part and part[0].role != "advice"), None)
    if found is None or (found[0].role == "error" and _MILD.search(opened.text)):
        return None
    return _hit(opened, *found)


def _first(rules: Iterable[Signature], text: str) -> tuple[Signature, regex.Match[str]] | None:
    return next(((rule, match) for rule in rules if (match := rule.search(text))), None)


def _hit(opened: _Opened, signature: Signature, match: regex.Match[str]) -> Hit:
    text, line, message = opened.text, opened.line, opened.message
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    code = exit_code(groups.get("code"), groups.get("sig"))
    # A logger puts its rank anywhere before what it says.
    torn = rank_before(text, len(text) if signature.role == "error" else max(0, text.find(match[0])))
    own, process = _OWN_RANK.search(message), _RAISED_AT.search(message)
    rank = groups.get("rank") or groups.get("task") or (own["rank"] if own and len(own["rank"]) < NO_RANK else None)
    return Hit(
        "",
        0,
        quoted(text if signature.role != "context" else message, match[0]),
        meaning_of(signature, code, _messages_of(message, match)),
        rank=_first_number(torn, line.rank, rank, process["rank"] if process else None),
        local_rank=_first_number(groups.get("local_rank"), line.local_rank),
        host=groups.get("host") or (process["host"] if process else line.host),
        code=code,
        clock=clock_of(text),
        absent=tuple(int(rank) for rank in _RANKS.findall(groups.get("absent", "")) if len(rank) < NO_RANK),
        fields={name: value for name, value in groups.items() if name not in _ATTRIBUTES}
        | ({PROCESS: _process(process)} if process else {}),
    )


def _process(match: regex.Match[str]) -> str:
    """What Ray calls a process: what it was called for, if the line says so, and its number."""
    return f"{match['call']}(), pid {match['pid']}" if match["call"] else f"pid {match['pid']}"


def _messages_of(message: str, match: regex.Match[str]) -> list[str]:
    """What a line says: the reason that it gives, and all that it says, where its pattern names these.

    Else what is from the type of its exception on, which ``match`` ends with, or after the match.
    """
    named = match.groupdict()
    if "reason" in named:
        return [text for text in (named["reason"], named.get("says")) if text]
    kind = _KIND.search(match[0])
    return [message[match.start() + kind.start() :] if kind else message[match.end() :] or message]


def _first_number(*values: int | str | None) -> int | None:
    return next((int(value) for value in values if value is not None), None)


def _with_rank_above(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` in which an exception and messages of CANN have the rank of torch_npu's line between them."""
    head: Hit | None = None
    ranked: list[Hit] = []
    for hit in hits:
        if hit.has("rank_of_cann") and "RankID:" in hit.text:
            head = hit
            if ranked and ranked[-1].rank is None and hit.line - ranked[-1].line == 1:
                ranked[-1] = replace(ranked[-1], rank=hit.rank)
        elif head is not None and hit.line - head.line <= BELOW_HEAD and hit.rank is None and _CODE.search(hit.text):
            hit = replace(hit, rank=head.rank)
        ranked.append(hit)
    return ranked


def _with_process_above(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` in which an exception has the rank or the host of the process that a line above it names."""
    above: Hit | None = None
    placed: list[Hit] = []
    for hit in hits:
        of_process = hit.role in JUDGED and not is_of_job(hit)
        if gathered := _GATHERED.search(hit.text):
            above = replace(hit, rank=int(gathered["rank"]), host=None)
        elif hit.has("process_below") or _CARRIES.search(hit.text):
            above = hit
        elif above is not None and of_process and hit.line - above.line <= LONGEST_TRACEBACK:
            hit = _in_process(hit, above)
            above = None
        placed.append(hit)
    return placed


def is_of_job(hit: Hit) -> bool:
    """Whether a line is about a whole job: the process whose launcher printed it is none of the reason."""
    return hit.family in OF_WHOLE_JOBS and not hit.has("of_process")


def _in_process(hit: Hit, above: Hit) -> Hit:
    if _GATHERED.search(above.text):
        return replace(hit, rank=above.rank, local_rank=None, host=None)
    if hit.rank is not None or hit.local_rank is not None:
        return hit
    process = {PROCESS: above.fields[PROCESS]} if PROCESS in above.fields else {}
    fields = {**hit.fields, **process}
    return replace(hit, rank=above.rank, local_rank=above.local_rank, host=hit.host or above.host, fields=fields)


def _with_rank_of_ddp(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` in which an exception of DDP has the rank that a line below it names."""
    ranked = list(hits)
    for at, hit in enumerate(hits):
        if hit.has("of_ddp") and hit.rank is None:
            near = (one for one in hits[at + 1 : at + 1 + BELOW_DDP] if one.line - hit.line <= BELOW_DDP)
            named = next((one for one in near if one.has("rank_of_ddp")), None)
            ranked[at] = hit if named is None else replace(hit, rank=named.rank)
    return ranked


def _judged_by_context(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Bare assertions with what they assert; exceptions that were caught are marked."""
    caught: dict[tuple[int | None, str | None], Hit] = {}
    for at, hit in enumerate(hits):
        if hit.role == "ignored":
            caught[hit.rank, hit.host] = hit
            yield hit
        elif _is_heading(hit, hits[at + 1 : at + 1 + FAR]):
            continue
        elif not hit.has("exception", "of_loader"):
            yield hit
        elif (begin := caught.pop((hit.rank, hit.host), None)) and hit.line - begin.line <= LONGEST_TRACEBACK:
            yield replace(hit, caught="logged" if begin.has("logged") else "ignored")
        elif hit.has("of_loader"):
            yield hit
        else:
            before = [other for other in hits[max(0, at - 2 * FAR) : at] if hit.line - other.line <= 2 * FAR]
            yield _with_context(hit, [other for other in before if other.rank == hit.rank])


def _without_handled(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` without exceptions of which nothing is known, while another that handled one says what failed."""
    dropped: set[int] = set()
    raised: dict[tuple[int | None, str | None], tuple[int, Hit]] = {}
    chained: dict[tuple[int | None, str | None], tuple[int, Hit]] = {}
    for at, hit in enumerate(hits):
        who = hit.rank, hit.host
        if hit.has("chains") and who in raised:
            chained[who] = raised[who]
        elif hit.role == "root":
            earlier = chained.pop(who, None)
            if earlier is not None and earlier[1].family == "exception" != hit.family:
                dropped.add(earlier[0])
            raised[who] = at, hit
    return [hit for at, hit in enumerate(hits) if at not in dropped]


def _without_summarized(hits: Sequence[Hit], block: TextBlock) -> list[Hit]:
    """``hits`` without exceptions that say little, below which a summary names what failed."""
    judged = [hit for hit in hits if hit.role in JUDGED]
    vague = {id(hit) for hit, below in pairwise(judged) if _is_vague(hit) and _has_summary(hit, below, block)}
    return [hit for hit in hits if id(hit) not in vague]


def _is_vague(hit: Hit) -> bool:
    return hit.has("exception") or _NO_MESSAGE.search(hit.text) is not None


def _has_summary(hit: Hit, below: Hit, block: TextBlock) -> bool:
    """Whether a summary begins after ``hit`` and holds ``below``, of the same process."""
    first, last = hit.line + 1 - block.first, below.line - block.first
    if last - first > LONGEST_TRACEBACK or (below.rank, below.host) != (hit.rank, hit.host):
        return False
    return any(_SUMMARY.search(read_prefixes(text).bare) for text in block.texts[first:last])


def _is_heading(hit: Hit, following: Sequence[Hit]) -> bool:
    """Whether ``hit`` is an exception without a message, or with that of another process, and a line below says it."""
    if hit.has("aborts"):
        return any("what():" in one.text and one.line - hit.line <= BELOW_HEADING for one in following[:1])
    if hit.role == "root" and _CARRIES.search(hit.text):
        own = (one for one in following if one.role in CARRIED and not is_of_job(one))
        below = (one for one in own if not _CARRIES.search(one.text))
        return any(hit.rank in (None, one.rank) and one.line - hit.line <= LONGEST_TRACEBACK for one in below)
    if hit.role == "root" and _TORN.search(hit.text):
        known = (one for one in following if one.role == "root" and one.family not in ("exception", "unknown"))
        return any(hit.rank in (None, one.rank) and one.line - hit.line <= FAR for one in known)
    if not hit.has("exception"):
        return False
    if not _HEADING.search(hit.text):
        return False
    if any(one.role == "root" and one.line - hit.line <= BELOW_HEADING for one in following[:BELOW_HEADING]):
        return True
    if _OF_USER.search(hit.text):
        return any(one.role == "root" and one.line - hit.line <= LONGEST_TRACEBACK for one in following[:1])
    # A compiler quotes the whole program before it says what is wrong with it.
    known = (one for one in following[:1] if one.role == "root" and one.family != "exception")
    return any(one.line - hit.line <= LONGEST_PROGRAM for one in known)


def _with_context(hit: Hit, before: Sequence[Hit]) -> Hit:
    """An exception with what it asserts, its process, and what the function was about that raised it."""
    named = _with_assertion(hit, before) if hit.text.endswith(BARE) else hit
    last = max((at for at, other in enumerate(before) if other.role != "context"), default=-1)
    own = before[last + 1 :]
    about = [other.meaning for other in own if other.family != "unknown"]
    if not about or not _may_be_about(named.meaning, about[-1]):
        return named
    frame = about[-1]
    # What reads the data raises it: the data themselves may be as they should.
    remedy = DATA_CODE if frame.family == "data" and _OF_CODE.search(named.text) else frame.remedy
    meaning = replace(named.meaning, family=frame.family, grade=frame.grade, remedy=remedy)
    return replace(named, meaning=meaning)


def _may_be_about(meaning: Meaning, frame: Meaning) -> bool:
    """Whether a frame of the traceback knows more than the message: one that reads checkpoints does in most cases."""
    vague = (meaning.family == "exception" and meaning.remedy in _VAGUE) or meaning.grade == "hypothesis"
    return vague or (frame.family == "checkpoint" and meaning.family in ("data", "file", "arguments", "numerics"))


def _with_assertion(hit: Hit, before: Sequence[Hit]) -> Hit:
    own = [other for other in before if other.has("asserts")]
    if not own:
        return hit
    text = f"{hit.text}: {own[-1].text}"[:LONGEST_QUOTE]
    return replace(hit, text=text, meaning=by_words(hit.meaning, text))


def _ends_of(text: str) -> str:
    """``text``, or of a long line its beginning and its end: the patterns take a time that grows with its square."""
    return text if len(text) <= 2 * LONGEST_END else f"{text[:LONGEST_END]}\n{text[-LONGEST_END:]}"


def quoted(text: str, mark: str) -> str:
    """``text`` without secrets, or if ``mark`` is far from its beginning the part around that, after its code."""
    text = without_notebook(text)
    at = max(0, text.find(mark))
    text = mask_text(text[max(0, at - LONGEST_END) : at + LONGEST_END])
    at = max(0, text.find(mark))
    begin = max(0, at - LONGEST_QUOTE // 2) if at + min(len(mark), LONGEST_QUOTE // 2) > LONGEST_QUOTE else 0
    shown = f"{_code_in(text[:begin])}…{text[begin:]}" if begin else text
    return " ".join(shown.split())[:LONGEST_QUOTE]


def _code_in(text: str) -> str:
    """The worker of Ray that a line begins with, and the code before its message."""
    worker, codes = OF_WORKER.match(text), _CODE.findall(text)
    return (f"{worker[0]} " if worker else "") + (f"{codes[-1]}: " if codes else "")


@cache
def _marks() -> tuple[str, ...]:
    """Every mark, also one that holds another one: to look for all takes no longer than to drop these."""
    known = (signature for signature in signatures() if signature.role != "advice")
    return tuple(dict.fromkeys(mark for signature in known for mark in signature.marks))


@cache
def _long_marks() -> tuple[str, ...]:
    """The marks that are worth looking for in lines that were cut."""
    known = (one for one in signatures() if one.role in _CAUSES and not one.general)
    return tuple(dict.fromkeys(mark for one in known for mark in one.marks if len(mark) >= LEAST_CUT))


@cache
def _find() -> str:
    """A pattern for polars that finds what has no mark; literals are found 50 times as fast."""
    return "|".join(signature.find for signature in signatures() if signature.find)
