"""The PaLM formula: 6 N and the full attention matrix; the model FLOPs of the common definition of MFU."""

from __future__ import annotations

from analysis.flops import six_n
from analysis.flops._formula import Formula, sizes
from analysis.model.shape import ModelShape


def terms(shape: ModelShape, seq_length: int) -> dict[str, float]:
    """FLOPs per token, forward and backward."""
    layers, hidden = sizes(shape, "num_layers", "hidden_size")
    return {**six_n.terms(shape, seq_length), "attention core": 12.0 * layers * hidden * seq_length}


FORMULA = Formula(
    name="palm",
    title="PaLM: 6 N and a full attention matrix as wide as the model",
    phrase="the PaLM formula",
    source="Chowdhery et al. 2022, PaLM, appendix B, with heads times head width = h",
    text="6 N + 12 l h s",
    needs=six_n.needs,
    terms=terms,
    symbols={**six_n.FORMULA.symbols, "attention core": "12 · l · h · s"},
    selective=("attention core",),
    full=("parameters", "attention core"),
    modules=six_n.modules,
    ignores=six_n.FORMULA.ignores,
    printed_as={"none": "6N+12lhs"},
)
