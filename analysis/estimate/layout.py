"""How a job is laid out on its devices, and how its batch is cut.

Comes in: sizes the user gives. Goes out: frozen records whose products hold. What does not divide is a UsageError.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.flops import Recompute
from analysis.shape import ModelShape
from logparse.errors import UsageError
from logparse.language import msg, tr

# Bytes of one activation or weight as the matrix products take it; fp8 recipes keep the model itself in 16 bit.
ELEMENT_BYTES = {"fp32": 4, "tf32": 4}


@dataclass(frozen=True)
class Layout:
    """Devices by axis: tensor, pipeline, data, context, expert parallel; ``vpp`` chunks of layers per stage.

    ``zero`` 0 to 3 is what the data-parallel ranks share out: nothing, optimizer state, gradients too, weights too.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    zero: int = 0
    sequence_parallel: bool = True

    @property
    def devices(self) -> int:
        """dp x pp x tp x cp; expert parallelism takes its devices from the data-parallel ones."""
        return self.dp * self.pp * self.tp * self.cp

    @property
    def zero_degree(self) -> int:
        """Ranks that share out the state under ZeRO: data times context parallel, as Megatron does."""
        return self.dp * self.cp

    def __str__(self) -> str:
        axes = {"tp": self.tp, "pp": self.pp, "dp": self.dp}
        axes |= {name: size for name, size in (("cp", self.cp), ("ep", self.ep), ("vpp", self.vpp)) if size > 1}
        return " ".join([*(f"{name} {size}" for name, size in axes.items()), f"ZeRO-{self.zero}"])


@dataclass(frozen=True)
class Training:
    """What one step does. ``global_batch_size`` None is unknown: then as many micro-batches as the pipeline holds.

    ``dropout`` keeps a mask per dropout; LLaMA and what came after have none.
    """

    seq_length: int
    micro_batch_size: int = 1
    global_batch_size: int | None = None
    recompute: Recompute = "none"
    dtype: str = "bf16"
    flash_attention: bool = True
    dropout: bool = False

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


def check_layout(shape: ModelShape, layout: Layout, training: Training) -> None:
    """Refuse a layout that no framework can run. Raises UsageError with the two numbers that do not divide."""
    experts = shape.num_experts or 1
    wanted = (
        (msg("attention heads"), shape.num_attention_heads, "--tp", layout.tp),
        (msg("the sequence length"), training.seq_length, "--cp", layout.cp),
        (msg("the experts"), experts if layout.ep > 1 else None, "--ep", layout.ep),
        (msg("data x context parallel size"), layout.zero_degree, "--ep", layout.ep),
    )
    for what, size, flag, parts in wanted:
        if size is not None and size % parts:
            text = tr(
                "{what} ({size}) cannot be split by {flag} {parts}", what=tr(what), size=size, flag=flag, parts=parts
            )
            raise UsageError(text, remedy=tr("give another {flag}", flag=flag))
    if shape.num_layers is not None and layout.pp * layout.vpp > shape.num_layers:
        sizes = {"layers": shape.num_layers, "pp": layout.pp, "vpp": layout.vpp}
        text = tr("{layers} layers cannot fill {pp} stages of {vpp} chunks", **sizes)
        raise UsageError(text, remedy=tr("give a smaller --pp or --vpp"))
    if layout.vpp > 1 and layout.pp == 1:
        raise UsageError(tr("--vpp needs a pipeline"), remedy=tr("give --pp above 1, or leave --vpp out"))
    training.micro_batches(layout.dp)


def layers_of_stages(num_layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage; what does not divide goes one each to the first stages, the fullest case."""
    whole, rest = divmod(num_layers, stages)
    return tuple(whole + (i < rest) for i in range(stages))
