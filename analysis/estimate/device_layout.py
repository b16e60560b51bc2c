"""How a job is laid out on its devices, and how its batch is cut.

Comes in: sizes the user gives. Goes out: frozen records whose products hold. What does not divide is a UsageError.
What a framework can run is judged by Megatron-LM: core/transformer/transformer_config.py, training/arguments.py,
core/pipeline_parallel/schedules.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from analysis.flops import WORDS, Recomputation, Recompute
from analysis.model.shape import ModelShape
from logparse.context.relations import LIMITS, MORE, PROBLEMS, Limit
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass
from logparse.schema import flag_of

# Bytes of one activation or weight as the matrix products take it; fp8 recipes keep the model itself in 16 bit.
ELEMENT_BYTES = {"fp32": 4, "tf32": 4}
# Number types of matrix products that training is done in.
TRAINED = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp4")
# What no model has; the shape does not hold the unpadded vocabulary.
IMPOSSIBLE = (*LIMITS, Limit("vocab_size", "padded_vocab_size", MORE, operator.gt))
# What is split among devices.
SPLIT = {
    "heads": msg("attention heads"),
    "sequence": msg("the sequence length"),
    "tokens": msg("with sequence parallelism, the tokens per device"),
    "experts": msg("the experts"),
    "expert_ranks": msg("the ranks that share the experts"),
}


@dataclass(frozen=True)
class Layout:
    """Devices by axis: tensor, pipeline, data, context, expert parallel; ``vpp`` chunks of layers per stage.

    ``zero`` 0 to 3 is what the data-parallel ranks share out: nothing, optimizer state, gradients too, weights too.
    ``etp`` devices share each expert; None is as many as ``tp`` where the experts then find their ranks, else one.
    ``uneven`` is interleaving as a run cut it by hand, like MindFormers' ``offset``: its chunks may differ in size.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    zero: int = 0
    sequence_parallel: bool = True
    etp: int | None = None
    uneven: bool = False

    @property
    def devices(self) -> int:
        """dp x pp x tp x cp; expert parallelism takes its devices from the others of a stage."""
        return self.dp * self.pp * self.tp * self.cp

    @property
    def zero_degree(self) -> int:
        """Ranks that share out the state under ZeRO: data times context parallel, as Megatron does."""
        return self.dp * self.cp

    @property
    def expert_tp(self) -> int:
        """Devices that share each expert: ``etp``, and where it is free ``tp`` if dp x cp then holds ``ep``, else 1."""
        if self.etp is not None:
            return self.etp
        return self.tp if self.zero_degree % self.ep == 0 else 1

    @property
    def expert_ranks(self) -> int:
        """Ranks that share out the experts: dp x cp x tp / etp, as Megatron-LM folds them (core/parallel_state.py)."""
        return self.zero_degree * self.tp // self.expert_tp

    def __str__(self) -> str:
        axes = {"tp": self.tp, "pp": self.pp, "dp": self.dp}
        axes |= {name: size for name, size in (("cp", self.cp), ("ep", self.ep), ("vpp", self.vpp)) if size > 1}
        if self.ep > 1 and self.expert_tp != self.tp:
            axes["etp"] = self.expert_tp
        return " ".join([*(f"{name} {size}" for name, size in axes.items()), f"ZeRO-{self.zero}"])


@dataclass(frozen=True)
class Training:
    """What one step does. ``global_batch_size`` None is unknown: then as many micro-batches as the pipeline holds.

    ``dropout`` keeps a mask per dropout; LLaMA and what came after have none. ``recomputed_layers`` are those of a run
    that recomputes only some of them; memory is that of all recomputed.
    """

    seq_length: int
    micro_batch_size: int = 1
    global_batch_size: int | None = None
    recompute: Recompute = "none"
    dtype: str = "bf16"
    flash_attention: bool = True
    dropout: bool = False
    recomputed_layers: int | None = None

    def recomputation(self, num_layers: int | None) -> Recomputation:
        """What of the forward pass runs again, of ``num_layers`` layers."""
        if self.recompute != "full" or self.recomputed_layers is None or not num_layers:
            return WORDS[self.recompute]
        share = min(self.recomputed_layers / num_layers, 1.0)
        return Recomputation(share, float(share == 1.0))

    @property
    def element_bytes(self) -> int:
        """Bytes of one activation."""
        return ELEMENT_BYTES.get(self.dtype, 2)

    def micro_batches(self, dp: int) -> int | None:
        """Micro-batches of one step on one data-parallel rank. Raises UsageError where the batch does not divide."""
        if self.global_batch_size is None:
            return None
        whole, rest = divmod(self.global_batch_size, self.micro_batch_size * dp)
        if rest:
            text = tr(
                "the global batch {batch} is not a multiple of micro batch x data parallel size ({micro} x {dp})",
                batch=self.global_batch_size,
                micro=self.micro_batch_size,
                dp=dp,
            )
            raise UsageError(text, remedy=tr("change --global-batch-size, --micro-batch-size or --dp"))
        return whole


def check_model(shape: ModelShape, vocab_size: int | None, training: Training | None) -> None:
    """Refuse sizes that no model has and a number type that nothing trains in. Raises UsageError that names flags."""
    known = {**vars(shape), "vocab_size": vocab_size}
    for limit in IMPOSSIBLE:
        first, second = known[limit.first], known[limit.second]
        if None in (first, second) or any(known[n] for n in limit.unless) or not limit.broken(first, second):
            continue
        text = tr(PROBLEMS[limit.code], first=f"{limit.first} {first}", second=f"{limit.second} {second}")
        flags = f"{flag_of(limit.first)}, {flag_of(limit.second)}"
        raise UsageError(text, remedy=tr("change one of {flags}", flags=flags))
    if training is not None and training.dtype not in TRAINED:
        text = tr("training in --dtype {dtype} is not supported", dtype=training.dtype)
        raise UsageError(text, remedy=tr("use one of {names}", names=", ".join(TRAINED)))


def check_layout(shape: ModelShape, layout: Layout, training: Training) -> None:
    """Refuse a layout that no framework can run. Raises UsageError with the two numbers that do not divide."""
    for split in _splits(shape, layout, training):
        if split.size is not None and split.size % (split.times * split.parts):
            by = split.flag if split.times == 1 else f"{split.times} x {split.flag}"
            sizes = {"size": split.size, "flag": by, "parts": split.parts}
            text = tr("{what} ({size}) cannot be split by {flag} {parts}", what=tr(SPLIT[split.what]), **sizes)
            other = tr("give another {flag}", flag=split.flag)
            fewer = tr("change --seq-length or --tp, or pass --no-sequence-parallel")
            raise UsageError(text, remedy=fewer if split.what == "tokens" else other)
    _check_key_value_heads(shape, layout)
    _check_pipeline(shape, layout, training)


def layout_notes(shape: ModelShape, layout: Layout) -> Iterator[Note]:
    """Notes on a layout that only some frameworks run, or that is ambiguous."""
    groups = shape.num_query_groups
    if groups is not None and groups < layout.tp and not shape.multi_latent_attention:
        yield info("key_value_heads_below_tp", groups=groups, tp=layout.tp)
    if layout.ep > 1 and layout.tp > 1:
        code = "experts_whole" if layout.expert_tp == 1 else "experts_split"
        yield info(code, ep=layout.ep, etp=layout.expert_tp)


@dataclass(frozen=True)
class _Split:
    """``size`` must be a multiple of ``times`` x ``parts``, and ``flag`` gives the parts; ``what`` is of SPLIT."""

    what: str
    size: int | None
    flag: str
    parts: int
    times: int = 1


def _splits(shape: ModelShape, layout: Layout, training: Training) -> Iterator[_Split]:
    yield _Split("heads", shape.num_attention_heads, "--tp", layout.tp)
    # With causal attention each rank takes a piece from both ends of the sequence, so that all have the same work.
    pieces = 2 if layout.cp > 1 else 1
    yield _Split("sequence", training.seq_length, "--cp", layout.cp, pieces)
    if layout.sequence_parallel:
        yield _Split("tokens", training.seq_length // layout.cp, "--tp", layout.tp)
    if layout.ep > 1:
        yield _Split("experts", shape.num_experts or 1, "--ep", layout.ep)
    yield _Split("expert_ranks", layout.expert_ranks, "--ep", layout.ep)


def _check_key_value_heads(shape: ModelShape, layout: Layout) -> None:
    """Each rank has some, or some ranks share one; multi-latent attention has one per query head."""
    groups, tp = shape.num_query_groups, layout.tp
    if groups is None or shape.multi_latent_attention or groups % tp == 0 or tp % groups == 0:
        return
    text = tr("{groups} key/value heads cannot be split evenly by --tp {tp}", groups=groups, tp=tp)
    raise UsageError(text, remedy=tr("give another {flag}", flag="--tp"))


def _check_pipeline(shape: ModelShape, layout: Layout, training: Training) -> None:
    sizes = {"layers": shape.num_layers, "pp": layout.pp, "vpp": layout.vpp}
    smaller = tr("give a smaller --pp or --vpp")
    if shape.num_layers is not None and layout.pp * layout.vpp > shape.num_layers:
        raise UsageError(tr("{layers} layers cannot fill {pp} stages of {vpp} chunks", **sizes), remedy=smaller)
    if layout.vpp > 1 and layout.pp == 1:
        raise UsageError(tr("--vpp needs a pipeline"), remedy=tr("give --pp above 1, or omit --vpp"))
    micro_batches = training.micro_batches(layout.dp)
    if layout.vpp == 1 or layout.uneven:
        return
    if shape.num_layers is not None and shape.num_layers % (layout.pp * layout.vpp):
        text = tr("{layers} layers do not divide into {pp} stages of {vpp} equal chunks", **sizes)
        raise UsageError(text, remedy=tr("give another {flag}", flag="--vpp"))
    if micro_batches is not None and micro_batches % layout.pp:
        text = tr("with --vpp the micro-batches ({m}) must be a multiple of --pp {pp}", m=micro_batches, pp=layout.pp)
        raise UsageError(text, remedy=tr("change --global-batch-size, --micro-batch-size or --dp, or omit --vpp"))


def layers_of_stages(num_layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage; what does not divide goes one each to the first stages, the fullest case."""
    whole, rest = divmod(num_layers, stages)
    return tuple(whole + (i < rest) for i in range(stages))
