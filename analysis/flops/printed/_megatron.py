"""The formula of Megatron-LM as it grew from core 0.5 on, and those of others made from the same matrix products."""

from __future__ import annotations

from dataclasses import replace

from analysis.flops import megatron
from analysis.flops._formula import sizes
from analysis.flops.printed._printed_formula import Flops, Needs, PrintedFormula, always
from analysis.model.shape import ModelShape

BLOCK = ("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "padded_vocab_size")


def _first(shape: ModelShape, seq_length: int) -> float:
    layers, hidden, heads, groups, vocab = sizes(shape, *BLOCK)
    attention = groups / (5 * heads) + seq_length / (5 * hidden)
    return 60.0 * layers * hidden**2 * (1 + attention + vocab / (10 * layers * hidden))


def _before_causal(age: int) -> Flops:
    """Megatron-LM by age: 3 counts chosen experts, 4 the gate, 5 the head width, 6 shared experts, 7 expert width."""

    def flops(shape: ModelShape, seq_length: int) -> float:
        layers, hidden, heads, groups, vocab = sizes(shape, *BLOCK)
        width = sizes(shape, "kv_channels")[0] * heads / hidden if age >= 5 else 1
        gate = 1.5 if age >= 4 and shape.gated_linear_unit else 1
        shared = (shape.moe_shared_expert_intermediate_size or 0) if age >= 6 else 0
        attention = (1 + groups / heads + seq_length / hidden) * width
        mlp = gate * (_chosen(shape, age >= 3) * sizes(shape, _inner(shape, age >= 7))[0] + shared) / hidden
        return 12.0 * layers * hidden**2 * (attention + mlp + vocab / (2 * layers * hidden))

    return flops


def _needs(age: int) -> Needs:
    gate = ("gated_linear_unit",) if age >= 4 else ()
    width = ("kv_channels",) if age >= 5 else ()
    return lambda shape: (*BLOCK, _inner(shape, age >= 7), *gate, *width, *_topk(shape, age >= 3))


def _inner(shape: ModelShape, own_width: bool) -> str:
    """The inner width of one MLP; with ``own_width`` that of an expert where there are experts."""
    return "moe_ffn_hidden_size" if own_width and shape.num_experts else "ffn_hidden_size"


def _topk(shape: ModelShape, counts_experts: bool) -> tuple[str, ...]:
    return ("moe_router_topk",) if counts_experts and shape.num_experts else ()


def _chosen(shape: ModelShape, counts_experts: bool) -> int:
    """Experts one token is sent to, as far as they are counted."""
    return sum(sizes(shape, *_topk(shape, counts_experts))) or 1


def _causal(shape: ModelShape, seq_length: int) -> float:
    """Without windows and capacities, which Megatron does not count."""
    return sum(megatron.terms(_uncapped(shape), seq_length).values())


def _uncapped(shape: ModelShape) -> ModelShape:
    return replace(shape, num_window_layers=None, moe_capacity_factor=None)


def _full_core(shape: ModelShape, seq_length: int) -> float:
    """The whole attention matrix; Megatron counts half."""
    return 2 * megatron.terms(_uncapped(shape), seq_length)["attention core"]


def _without_core(shape: ModelShape, seq_length: int) -> float:
    return _causal(shape, seq_length) - _full_core(shape, seq_length) / 2


def _deepspeed(recomputed: str, experts: bool) -> Flops:
    """Multiply-adds of the forward pass, three times, and what is recomputed."""

    def flops(shape: ModelShape, seq_length: int) -> float:
        layers, hidden, heads, groups, vocab = sizes(shape, *BLOCK)
        width, inner = sizes(shape, "kv_channels", "ffn_hidden_size")
        # Both divisions are of whole numbers in the source: above two heads to a group, keys and values count nothing.
        projections = layers * (2 + 2 // max(1, heads // groups)) * hidden**2
        core = 2 * layers * heads * width * seq_length
        mlp = layers * (3 if shape.gated_linear_unit else 2) * inner * hidden * _chosen(shape, experts)
        forward = projections + core + mlp + vocab * hidden
        again = {"none": 0, "selective": core, "full": forward}[recomputed]
        return 2.0 * (3 * forward + again)

    return flops


def _d(prefix: str, when: str, experts: bool) -> tuple[PrintedFormula, ...]:
    """One formula for each way of recomputing."""
    sizes_needed = (*BLOCK, "kv_channels", "ffn_hidden_size", "gated_linear_unit")
    k, r = ("k ", "") if experts else ("", ", every expert model taken as dense")
    text = f"2 (3 F + again), F = l h^2 (2 + floor(2 / floor(a/g))) + 2 l a d s + l u {k}f h + h V{r}; again = "
    ways = (("none", "no recompute", "0"), ("selective", "selective recompute counted", "2 l a d s"))
    return tuple(
        PrintedFormula(
            f"{prefix}-{way}",
            f"Megatron-DeepSpeed {when}, {counted}",
            f"Megatron-DeepSpeed {when}",
            text + again,
            lambda shape: (*sizes_needed, *_topk(shape, experts)),
            _deepspeed(way, experts),
        )
        for way, counted, again in (*ways, ("full", "recompute counted", "F"))
    )


def _nemo(core: float) -> Flops:
    """``core`` is the share of the attention matrix that is counted; heads are taken to add up to h."""

    def flops(shape: ModelShape, seq_length: int) -> float:
        layers, hidden, heads, groups, vocab = sizes(shape, *BLOCK)
        inner = _chosen(shape, True) * sizes(shape, _inner(shape, True))[0]
        mlp = (18 if shape.gated_linear_unit else 12) * inner / hidden
        attention = 12 + 12 * groups / heads + 12 * core * seq_length / hidden
        return layers * hidden**2 * (attention + mlp) + 6.0 * vocab * hidden

    return flops


def _m(age: int, title: str, printed_by: str, text: str) -> PrintedFormula:
    return PrintedFormula(f"M{age}", title, printed_by, text, _needs(age), _before_causal(age))


def _n(name: str, when: str, core: float) -> PrintedFormula:
    text = f"l h^2 (12 + 12 g/a + 6 u k f/h + {12 * core:g} s/h) + 6 h V"
    needs = _needs(7)
    return PrintedFormula(name, f"NeMo {when}", f"NeMo {when}, its own vocabulary sizes", text, needs, _nemo(core))


MEGATRON_FORMULAS = (
    PrintedFormula(
        "M1",
        "Megatron core 0.5",
        "Megatron-LM since 2023-11, core 0.5; ModelLink 1.0.RC1",
        "60 l h^2 (1 + g/(5a) + s/(5h) + V/(10 l h))",
        always(*BLOCK),
        _first,
    ),
    _m(2, "Megatron-LM 2024-02", "Megatron-LM since 2024-02", "12 l h^2 (1 + f/h + g/a + s/h + V/(2 l h))"),
    _m(3, "Megatron-LM 2024-03", "Megatron-LM since 2024-03-13", "M2 with k f for f"),
    _m(
        4,
        "Megatron core 0.6",
        "Megatron-LM since 2024-03-25, core 0.6; ModelLink 1.0.RC2 and RC3, MindSpeed-LLM 1.0",
        "M3 with 1.5 k f for k f where the MLP is gated",
    ),
    _m(
        5,
        "Megatron core 0.7 to 0.9",
        "Megatron-LM since 2024-04, core 0.7 to 0.9; MindSpeed-LLM 2.0 and 2.1",
        "M4 with (1 + g/a + s/h) a d/h",
    ),
    _m(6, "Megatron core 0.10 and 0.11", "Megatron-LM since 2024-09, core 0.10 and 0.11", "M5 with k f + f_s"),
    _m(7, "Megatron-LM 2025-02", "Megatron-LM since 2025-02", "M6 with k f_e + f_s"),
    PrintedFormula(
        "M8",
        "Megatron core 0.12 and later",
        "Megatron-LM since 2025-03, core 0.12 and later; MindSpeed-LLM 2.2 and later; MindFormers 1.9 and later; "
        "Megatron-Bridge",
        megatron.FORMULA.text,
        megatron.needs,
        _causal,
    ),
    PrintedFormula(
        "M8r",
        "MindSpeed-LLM with its printed attention share",
        "MindSpeed-LLM 2.3 and later, label 'core attn ratio (%)'",
        "M8 with that share of 2 a d s for a d s",
        megatron.needs,
        _without_core,
        measured_core=_full_core,
    ),
    *_d("D", "since 2024-10", experts=True),
    *_d("D1", "2024-08 to 2024-10", experts=False),
    _n("N", "since 2025-08", 0.5),
    _n("N1", "before 2025-08", 1.0),
    PrintedFormula(
        "G",
        "MindFormers graph mode, from the shape",
        "MindFormers 1.5 to 1.8, graph mode: the matrix products of the compiled graph",
        "M8 with 2 a d s for a d s",
        megatron.needs,
        lambda shape, s: _without_core(shape, s) + _full_core(shape, s),
        accuracy=0.002,
    ),
)
