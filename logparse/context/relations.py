"""The table of relations: what follows from known facts of a run, and which facts contradict each other.

A row is a product of sizes, a pace that a printed column gives, or a rule of the shape. Nothing is guessed: a row that
does not apply gives nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from logparse.context.device_meshes import DIMENSIONS, LAST_PROCESS, MESH, mesh_size
from logparse.context.layer_patterns import (
    hybrid_layers,
    linear_attention_layers,
    moe_layers,
    noop_layers,
    number_of_window,
    window_layers,
)
from logparse.context.recomputed_layers import recomputed_layers
from logparse.errors import UsageError
from logparse.findings import Note, Origin, info, warning
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Fact:
    """A value and where it is from."""

    value: Any
    origin: Origin


Rule = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Derivation:
    """A quantity that follows from others. ``code`` names the rule; None of ``rule`` means that it does not apply."""

    quantity: str
    needs: tuple[str, ...]
    code: str
    rule: Rule


WORLD, BATCH, LENGTH, TOKENS = "world_size", "global_batch_size", "seq_length", "tokens_per_step"
_TP, _PP, _DP = "tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size"
_CP, _MICRO, _PASSES = "context_parallel_size", "micro_batch_size", "num_microbatches"
_CHUNKS, _MLP = "virtual_pipeline_model_parallel_size", "ffn_hidden_size"
_SHARED, _GQA, _HEADS = "moe_shared_expert_intermediate_size", "group_query_attention", "num_attention_heads"


@dataclass(frozen=True)
class Product:
    """``whole`` is the product of ``parts``. ``codes`` name the rule for each quantity that follows from the others.

    Context parallelism is 1 in a framework that does not print it. ``checked``: a product that does not match is noted.
    """

    whole: str
    parts: tuple[str, ...]
    codes: Mapping[str, str]
    checked: bool = False

    @property
    def rules(self) -> Iterator[Derivation]:
        """A rule for each quantity that follows."""
        for quantity, code in self.codes.items():
            needs = [name for name in (self.whole, *self.parts) if name not in (quantity, _CP)]
            yield Derivation(quantity, tuple(needs), code, partial(self._solve, quantity))

    def _solve(self, quantity: str, q: Mapping[str, Any]) -> int | None:
        product = math.prod(q.get(name) or 1 for name in self.parts if name != quantity)
        return product or None if quantity == self.whole else _quotient(q[self.whole], product)


def _quotient(whole: int, part: float) -> int | None:
    return round(whole / part) if part > 0 and (whole / part).is_integer() else None


def _rounded_up(value: int, multiple: int) -> int | None:
    return -(-value // multiple) * multiple if multiple > 0 else None


def _llama_width(q: Mapping[str, Any]) -> int | None:
    """Source: meta-llama/llama, model.py, FeedForward; torchtitan keeps it."""
    width = int(2 * 4 * q["hidden_size"] / 3)
    return _rounded_up(int(q.get("ffn_dim_multiplier", 1) * width), q["ffn_multiple_of"])


PRODUCTS = (
    Product(BATCH, ("batch_size_per_device", _PASSES, WORLD), {WORLD: "world_size_of_batches"}),
    Product(
        WORLD,
        (_DP, _TP, _PP, _CP),
        {WORLD: "world_size_of_parallel_sizes", _DP: "data_parallel_size_of_world_size"},
        checked=True,
    ),
    Product(TOKENS, (BATCH, LENGTH), {LENGTH: "seq_length_of_tokens", BATCH: "global_batch_of_tokens"}),
    Product(WORLD, ("num_nodes", "devices_per_node"), {WORLD: "world_size_of_nodes"}, checked=True),
    Product(
        BATCH,
        (_MICRO, _PASSES, _DP),
        {
            BATCH: "global_batch_of_microbatches",
            _PASSES: "num_microbatches_of_global_batch",
            _DP: "data_parallel_size_of_batches",
        },
        checked=True,
    ),
    Product(BATCH, ("batch_size_per_model_replica", _DP), {BATCH: "global_batch_of_batch_size"}),
    Product(_MLP, ("hidden_size", "ffn_of_hidden_size"), {_MLP: "mlp_width_of_hidden_size"}),
    Product("hidden_size", ("kv_channels", _HEADS), {"kv_channels": "kv_channels_of_hidden_size"}),
    Product(_SHARED, ("num_shared_experts", "moe_ffn_hidden_size"), {_SHARED: "width_of_shared_experts"}),
    Product("num_layers", (_PP, "num_layers_per_virtual_pipeline_stage", _CHUNKS), {_CHUNKS: "chunks_of_layers"}),
    Product("pipeline_stages", (_PP, _CHUNKS), {_CHUNKS: "chunks_of_stages"}),
)


@dataclass(frozen=True)
class Pace:
    """Steps per second by the number of a printed ``column``, or by its inverse where it is a ``time``.

    ``factor`` makes seconds of it. The pace is the number times the product of ``sizes`` to their powers: that of all
    devices has 1 for their number, the work of a step -1.
    """

    column: str
    sizes: Mapping[str, int]
    time: bool = False
    factor: float = 1.0


_OF_TOKENS, _OF_SAMPLES = {BATCH: -1, LENGTH: -1}, {BATCH: -1}
TIME, OF_STEPS = "elapsed_time_per_iteration_ms", "logged_steps_per_second"
# The kind of settings that are rates of a whole run; their names are columns of steps.
SUMMARY = "summary"
# Where a line prints two of them, one size follows; where it prints no time, the time does. Those of steps come first.
PACES = (
    Pace(TIME, {}, time=True, factor=1e-3),
    Pace("logged_seconds_per_step", {}, time=True),
    Pace(OF_STEPS, {}),
    *(
        Pace(f"logged_{of}_per_second{each}", {**work, **devices})
        for of, works in (("tokens", (_OF_TOKENS, {TOKENS: -1})), ("samples", (_OF_SAMPLES,)))
        for each, devices in (("_per_device", {WORLD: 1}), ("", {}))
        for work in works
    ),
)

DERIVATIONS = (
    *(
        Derivation(f"num_{kind}_layers", needs, f"layers_of_hybrid_{of}", hybrid_layers(letter))
        # The letters of the layers of a hybrid model in its pattern.
        for kind, letter in zip(("attention", "mamba", "linear_attention", "mlp", "moe"), "*MG-E", strict=True)
        for of, needs in (("pattern", ("hybrid_layer_pattern",)), ("ratios", ("hybrid_attention_ratio", "num_layers")))
    ),
    *(
        Derivation(name, (printed,), "sizes_of_mesh", mesh_size(name))
        for printed in (MESH, LAST_PROCESS)
        for name in ("world_size", *DIMENSIONS)
    ),
    Derivation(_PP, (WORLD, _TP, "batch_size_per_model_replica"), "no_pipeline_in_megatron_v1", lambda _: 1),
    *(rule for product in PRODUCTS for rule in product.rules),
    Derivation(_MLP, ("hidden_size", "ffn_multiple_of"), "mlp_width_of_llama", _llama_width),
    Derivation("num_query_groups", (_GQA, _HEADS), "query_groups_of_heads", lambda q: None if q[_GQA] else q[_HEADS]),
    Derivation(
        "padded_vocab_size",
        ("vocab_size", _TP, "make_vocab_size_divisible_by"),
        "padded_vocab_rounded_up",
        lambda q: _rounded_up(q["vocab_size"], q["make_vocab_size_divisible_by"] * q[_TP]),
    ),
    Derivation("padded_vocab_size", ("vocab_size",), "padded_vocab_as_vocab", lambda q: q["vocab_size"]),
    Derivation("moe_ffn_hidden_size", ("num_experts", _MLP), "expert_width_of_mlp", lambda q: q[_MLP]),
    Derivation("num_moe_layers", ("num_experts", "num_layers", "moe_layer_freq"), "moe_layers_of_pattern", moe_layers),
    Derivation(
        "num_moe_layers",
        ("num_experts", "num_layers"),
        "moe_layers_all",
        lambda q: None if {"moe_layer_freq", "first_k_dense_replace"} & set(q) else moe_layers(q),
    ),
    Derivation(
        "num_linear_attention_layers",
        ("linear_attention_freq", "num_layers"),
        "linear_layers_of_pattern",
        linear_attention_layers,
    ),
    Derivation("sliding_window", ("window_size",), "window_of_tuple", number_of_window),
    Derivation("num_window_layers", ("sliding_window", "num_layers"), "window_layers_of_pattern", window_layers),
    Derivation("num_noop_layers", ("noop_layers", "num_layers"), "noop_layers_listed", lambda q: len(noop_layers(q))),
    Derivation("recomputed_layers", ("recompute", "num_layers"), "recomputed_layers_of_settings", recomputed_layers),
    Derivation("lora", ("adapter_parameters",), "lora_of_adapters", lambda _: True),
)


def derive(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Apply the rules until none adds anything."""
    known, before = dict(facts), -1
    while len(known) > before:
        before = len(known)
        for d in (d for d in DERIVATIONS if d.quantity not in known and all(name in known for name in d.needs)):
            value = d.rule({name: fact.value for name, fact in known.items()})
            if value is not None:
                known[d.quantity] = Fact(value, Origin("derived", rule=d.code))
    return known


def is_derived(fact: Fact) -> bool:
    """Whether a rule gave ``fact``."""
    return fact.origin.kind == "derived"


@dataclass(frozen=True)
class Limit:
    """Two sizes; no model has both where ``broken`` is true. It is not checked where ``unless`` is known and true.

    ``code`` is that of the note; PROBLEMS has what an error says.
    """

    first: str
    second: str
    code: str
    broken: Callable[[int, int], bool]
    unless: tuple[str, ...] = ()


def _does_not_divide(whole: int, part: int) -> bool:
    return part > 0 and whole % part != 0


MORE, NO_MULTIPLE = "size_more_than", "size_no_multiple"
# The error text where the user's own values break such a limit.
PROBLEMS = {MORE: msg("{first} is more than {second}"), NO_MULTIPLE: msg("{first} is not a multiple of {second}")}
_LATENT = "multi_latent_attention"
LIMITS = (
    Limit("num_moe_layers", "num_layers", MORE, operator.gt),
    Limit("moe_router_topk", "num_experts", MORE, operator.gt),
    Limit("num_query_groups", _HEADS, MORE, operator.gt, unless=(_LATENT,)),
    Limit(
        _HEADS,
        "num_query_groups",
        NO_MULTIPLE,
        lambda heads, groups: groups < heads and _does_not_divide(heads, groups),
        unless=(_LATENT,),
    ),
    Limit("hidden_size", _HEADS, NO_MULTIPLE, _does_not_divide, unless=("kv_channels", _LATENT)),
)


def broken_identities(facts: Mapping[str, Fact], given: Sequence[str]) -> Iterator[Note]:
    """Report products that do not come out and impossible sizes; refuse where they are all the user's own."""
    yield from _broken_products(facts, given)
    yield from _broken_limits(facts, given)


def _broken_limits(facts: Mapping[str, Fact], given: Sequence[str]) -> Iterator[Note]:
    for limit in LIMITS:
        names = (limit.first, limit.second)
        if any(n not in facts for n in names) or any(n in facts and facts[n].value for n in limit.unless):
            continue
        if not limit.broken(*(facts[n].value for n in names)):
            continue
        if all(n in given for n in names):
            first, second = (f"{n} {facts[n].value} ({facts[n].origin})" for n in names)
            remedy = tr("this model shape is impossible: give other values")
            raise UsageError(tr(PROBLEMS[limit.code], first=first, second=second), remedy=remedy)
        yield warning(limit.code, first=_known(facts, limit.first), second=_known(facts, limit.second))


def _known(facts: Mapping[str, Fact], name: str) -> Note:
    return info("known_quantity", name=name, value=facts[name].value, origin=facts[name].origin)


def _broken_products(facts: Mapping[str, Fact], given: Sequence[str]) -> Iterator[Note]:
    growing = {BATCH} if "rampup_batch_size" in facts else set()
    for whole, names in ((p.whole, p.parts) for p in PRODUCTS if p.checked and p.whole in {*facts} - growing):
        parts = [name for name in names if name in facts]
        missing = bool(set(names) - {*parts, _CP})
        product = math.prod(facts[name].value for name in parts)
        if not parts or _comes_out(facts[whole].value, product, missing):
            continue
        code = "product_no_multiple" if missing else "product_wrong"
        note = warning(code, whole=_known(facts, whole), product=product, parts=[_known(facts, n) for n in parts])
        # A part of size 1 changes no product, so it does not matter who gave it.
        if whole in given and all(n in given or facts[n].value == 1 for n in parts):
            raise _contradiction(note)
        yield note


def _comes_out(whole: int, product: int, missing: bool) -> bool:
    """Whether ``whole`` is ``product``, or a multiple of it where parts are ``missing``."""
    return product == whole or (missing and product > 0 and whole % product == 0)


def _contradiction(note: Note) -> UsageError:
    """The error for values of the user whose product does not match."""
    problem = msg("{whole} is not {product} = {sides}")
    if note.code == "product_no_multiple":
        problem = msg("{whole} is not a multiple of {product} = {sides}")
    sides = (note.fields["whole"], *note.fields["parts"])
    whole, *parts = ("{name} {value} ({origin})".format(**side.fields) for side in sides)
    return UsageError(
        tr(problem, whole=whole, product=note.fields["product"], sides=" x ".join(parts)),
        remedy=tr("give values whose product matches, or remove one of them"),
    )
