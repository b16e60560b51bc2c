"""What is known about a run: every quantity with its value and where the value is from.

Comes in: the settings frame and what the user gave. Goes out: a RunContext. Flags beat --model, which beats the
config file, which beats the log. What follows from known quantities is derived by a named rule; what does
not stays unknown.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import polars as pl
import regex

from logparse.errors import UsageError
from logparse.formats._base import LogFormat
from logparse.schema import QUANTITY, Quantity

NOTHING = ("None", "null", "")


@dataclass(frozen=True)
class Fact:
    """A value and where it is from: ``log line 202``, ``--world-size``, ``derived: ...``."""

    value: Any
    origin: str


@dataclass(frozen=True)
class RunContext:
    """Facts by quantity name, and the notes on what contradicts what."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """The value of a quantity; None where it is unknown."""
        fact = self.facts.get(name)
        return fact.value if fact else None

    def origin(self, name: str) -> str | None:
        """Where the value of a quantity is from."""
        fact = self.facts.get(name)
        return fact.origin if fact else None

    def values(self) -> dict[str, Any]:
        """Quantity to value, known ones only."""
        return {name: fact.value for name, fact in self.facts.items()}


def build_context(
    settings: pl.DataFrame,
    fmt: LogFormat,
    given: Sequence[Mapping[str, Fact]] = (),
    several: bool = False,
    lines: Mapping[str, Fact] | None = None,
) -> RunContext:
    """Put together what ``given`` (strongest first) and the log's ``settings`` say, and derive the rest.

    ``several``: the run has several files, so an origin names its file. ``lines`` are facts that the step lines print;
    they stand in where no setting does.
    Raises UsageError where quantities given by the user contradict each other.
    """
    log, notes = _facts_of_log(settings, fmt, several)
    facts: dict[str, Fact] = {}
    for layer in (*given, log):
        notes += _overridden(facts, layer)
        facts = {**layer, **facts}
    facts = {**(lines or {}), **facts}
    derived = _derive(facts)
    notes += _broken_identities(derived, [name for layer in given for name in layer])
    return RunContext({n: derived[n] for n in QUANTITY if n in derived}, tuple(notes))


def read_value(quantity: Quantity, text: str) -> Any:
    """The value of ``quantity`` as written in ``text``; None where the text gives none.

    Raises ValueError where the text is not of the quantity's kind.
    """
    if text in NOTHING:
        return None
    if quantity.kind == "text":
        return text
    if quantity.kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    number = regex.fullmatch(r"\[?\s*(-?\d+(?:\.\d+)?)\s*\]?", text)
    if number is None:
        raise ValueError(text)
    value = float(number.group(1))
    if quantity.kind == "float":
        return value
    if not value.is_integer() or abs(value) >= 2**53:
        raise ValueError(text)
    return int(value)


def _facts_of_log(settings: pl.DataFrame, fmt: LogFormat, several: bool) -> tuple[dict[str, Fact], list[str]]:
    """For each quantity the first name or choice of the format that applies."""
    printed, notes = _first_and_changed(settings)
    facts: dict[str, Fact] = {}
    for name in fmt.names:
        if name.quantity not in facts and name.setting in printed and _holds(name.when, printed):
            fact = _fact(QUANTITY[name.quantity], printed[name.setting], several)
            if fact is not None:
                facts[name.quantity] = fact
    for choice in fmt.choices:
        if choice.quantity not in facts and _holds(choice.when, printed):
            setting = next(iter(choice.when))
            origin = f"{_where(printed[setting], several)}: {setting.split(':')[1]} {printed[setting]['value']}"
            facts[choice.quantity] = Fact(read_value(QUANTITY[choice.quantity], choice.value), origin)
    return facts, notes


def _first_and_changed(settings: pl.DataFrame) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The first printing of each setting, and a note where a later start of the same log changed it."""
    printed: dict[str, dict[str, Any]] = {}
    changed: dict[str, dict[str, Any]] = {}
    for row in settings.iter_rows(named=True):
        key = f"{row['kind']}:{row['name']}"
        first = printed.setdefault(key, row)
        if row["value"] != first["value"] and row["name"] in QUANTITY and row["kind"] != "microbatches":
            changed.setdefault(key, row)
    notes = [
        f"{row['name']} is {printed[key]['value']} on line {printed[key]['line_number']} and {row['value']} on line "
        f"{row['line_number']}; the first is used for the whole run"
        for key, row in changed.items()
    ]
    return printed, notes


def _holds(when: Mapping[str, str], printed: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(key in printed and regex.fullmatch(pattern, printed[key]["value"]) for key, pattern in when.items())


def _fact(quantity: Quantity, row: Mapping[str, Any], several: bool) -> Fact | None:
    try:
        value = read_value(quantity, row["value"])
    except (ValueError, KeyError):
        return None
    # A mixture of one expert is a dense model; Megatron-DeepSpeed prints [1] for it.
    if value is None or (quantity.name == "num_experts" and value <= 1):
        return None
    # A size of 0 is a placeholder of the framework.
    if quantity.kind == "int" and quantity.flag and value < 1:
        return None
    return Fact(value, _where(row, several))


def _where(row: Mapping[str, Any], several: bool) -> str:
    return f"log line {row['line_number']}" + (f" of {PurePath(row['source']).name}" if several else "")


def _overridden(stronger: Mapping[str, Fact], weaker: Mapping[str, Fact]) -> Iterator[str]:
    for name, fact in weaker.items():
        if name in stronger and stronger[name].value != fact.value:
            first = stronger[name]
            yield f"{name} {first.value} ({first.origin}) is used; {fact.origin} says {fact.value}"


Rule = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Derivation:
    """A quantity that follows from others. ``text`` is shown as its origin. None means that the rule does not apply."""

    quantity: str
    needs: tuple[str, ...]
    text: str
    rule: Rule


def _whole(dividend: int, divisor: int) -> int | None:
    return dividend // divisor if divisor > 0 and dividend % divisor == 0 else None


def _rounded_up(value: int, multiple: int) -> int | None:
    return -(-value // multiple) * multiple if multiple > 0 else None


def _cp(q: Mapping[str, Any]) -> int:
    """Context parallelism is 1 in a framework that does not print it."""
    return q.get("context_parallel_size") or 1


_TP, _PP, _DP = "tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size"


def _moe_layers(q: Mapping[str, Any]) -> int | None:
    """Count the layers with experts: a list of 0 and 1 by layer (possibly a Python expression), or every n-th."""
    text = str(q["moe_layer_freq"])
    if text.isdigit():
        every, dense = int(text), q.get("first_k_dense_replace") or 0
        if not every:
            return None
        return sum(i >= dense and i % every == 0 for i in range(q["num_layers"]))
    pattern = regex.sub(r"\(?(\[[01, ]+\])\)?\s*\*\s*(\d+)", lambda m: str(ast.literal_eval(m[1]) * int(m[2])), text)
    flags = regex.findall(r"[01]", pattern)
    return flags.count("1") if len(flags) == q["num_layers"] else None


DERIVATIONS = (
    Derivation(
        "world_size",
        (_DP, _TP, _PP),
        "derived: data x tensor x pipeline x context parallel size",
        lambda q: q[_DP] * q[_TP] * q[_PP] * _cp(q),
    ),
    Derivation(
        _PP,
        ("world_size", _TP, "batch_size_per_model_replica"),
        "derived: Megatron-LM v1 has no pipeline parallelism",
        lambda q: 1,
    ),
    Derivation(
        _DP,
        ("world_size", _TP, _PP),
        "derived: world size / (tensor x pipeline x context parallel size)",
        lambda q: _whole(q["world_size"], q[_TP] * q[_PP] * _cp(q)),
    ),
    Derivation(
        "global_batch_size",
        ("batch_size_per_model_replica", _DP),
        "derived: batch_size x data parallel size",
        lambda q: q["batch_size_per_model_replica"] * q[_DP],
    ),
    Derivation(
        "global_batch_size",
        ("micro_batch_size", "num_microbatches", _DP),
        "derived: micro batch x micro-batches x data parallel size",
        lambda q: q["micro_batch_size"] * q["num_microbatches"] * q[_DP],
    ),
    Derivation(
        "num_microbatches",
        ("global_batch_size", "micro_batch_size", _DP),
        "derived: global batch / (micro batch x data parallel size)",
        lambda q: _whole(q["global_batch_size"], q["micro_batch_size"] * q[_DP]),
    ),
    Derivation(
        "kv_channels",
        ("hidden_size", "num_attention_heads"),
        "derived: hidden size / attention heads",
        lambda q: _whole(q["hidden_size"], q["num_attention_heads"]),
    ),
    Derivation(
        "num_query_groups",
        ("group_query_attention", "num_attention_heads"),
        "derived: group_query_attention is off, so as many as attention heads",
        lambda q: None if q["group_query_attention"] else q["num_attention_heads"],
    ),
    Derivation(
        "padded_vocab_size",
        ("vocab_size", _TP, "make_vocab_size_divisible_by"),
        "derived: vocabulary rounded up to make_vocab_size_divisible_by x tensor parallel size",
        lambda q: _rounded_up(q["vocab_size"], q["make_vocab_size_divisible_by"] * q[_TP]),
    ),
    Derivation(
        "padded_vocab_size", ("vocab_size",), "derived: vocabulary, taken as not padded", lambda q: q["vocab_size"]
    ),
    Derivation(
        "moe_ffn_hidden_size",
        ("num_experts", "ffn_hidden_size"),
        "derived: not set, so that of the dense MLP",
        lambda q: q["ffn_hidden_size"],
    ),
    Derivation(
        "num_moe_layers", ("num_experts", "num_layers", "moe_layer_freq"), "derived: moe_layer_freq", _moe_layers
    ),
    Derivation(
        "num_moe_layers",
        ("num_experts", "num_layers"),
        "derived: moe_layer_freq is not set, so every layer",
        lambda q: None if {"moe_layer_freq", "first_k_dense_replace"} & set(q) else q["num_layers"],
    ),
)


def _derive(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Apply the rules until none adds anything."""
    known = dict(facts)
    growing = True
    while growing:
        growing = False
        for d in DERIVATIONS:
            if d.quantity in known or any(n not in known for n in d.needs):
                continue
            value = d.rule({n: f.value for n, f in known.items()})
            if value is not None:
                known[d.quantity] = Fact(value, d.text)
                growing = True
    return known


PRODUCTS = (
    ("world_size", (_DP, _TP, _PP, "context_parallel_size")),
    ("global_batch_size", ("micro_batch_size", "num_microbatches", _DP)),
)


def _broken_identities(facts: Mapping[str, Fact], given: Sequence[str]) -> Iterator[str]:
    """Report products that do not come out; refuse where the user's own values break them."""
    for whole, names in PRODUCTS:
        parts = [n for n in names if n in facts]
        if whole not in facts or not parts or (whole == "global_batch_size" and "rampup_batch_size" in facts):
            continue
        product = math.prod(facts[n].value for n in parts)
        missing = set(names) - set(parts) - {"context_parallel_size"}
        if product == facts[whole].value or (missing and product > 0 and facts[whole].value % product == 0):
            continue
        sides = " x ".join(f"{n} {facts[n].value} ({facts[n].origin})" for n in parts)
        sign = "not a multiple of" if missing else "not"
        text = f"{whole} {facts[whole].value} ({facts[whole].origin}) is {sign} {product} = {sides}"
        # A part of size 1 changes no product, so it does not matter who gave it.
        if whole in given and all(n in given or facts[n].value == 1 for n in parts):
            raise UsageError(text, remedy="give values whose product comes out, or leave one of them out")
        yield text
