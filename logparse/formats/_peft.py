"""What part of a model is trained, as PEFT, LLaMA-Factory and ms-swift print it: adapters, where it is a part."""

from __future__ import annotations

from logparse.formats._base import Choice, Name, SettingSentence

_TRAINED = r"trainable params: (?P<trainable>[\d,]+) \|\| all params: [\d,]+ \|\| trainable%: (?P<share>[\d.]+)"
# Per cent, unless all of it is trained.
_PART = r"\d{1,2}(?:\.\d+)?"
_CLASS = "parameter info:class"

PEFT_SENTENCES = (
    # PEFT prints it of adapters, LLaMA-Factory of any method.
    SettingSentence("peft", "|| all params: ", rf"^{_TRAINED}"),
    SettingSentence("loader", "|| all params: ", rf">> {_TRAINED}"),
    SettingSentence("loader", "Fine-tuning method: ", r"Fine-tuning method: (?P<method>\w+)"),
    # ms-swift, of any method, after the class of the model.
    SettingSentence(
        "parameter info",
        "M Trainable [",
        r"\b(?P<class>\w+): [\d.]+M Params \((?P<millions>[\d.]+)M Trainable \[(?P<share>[\d.]+)%\]",
    ),
)
PEFT_NAMES = (
    Name("adapter_parameters", "peft:trainable", when={"peft:share": _PART}),
    Name("adapter_parameters", "loader:trainable", when={"loader:share": _PART, "loader:method": "[LD]oRA"}),
    Name("adapter_parameters", "parameter info:millions", when={_CLASS: "Peft.*"}, scale=1e6),
)
PEFT_CHOICES = (
    Choice("lora", "True", {_CLASS: "Peft.*"}),
    # Adapters are trained on samples of any length. Where they are packed, the upper bound is the figure itself.
    Choice("variable_seq_lengths", "True", {"peft:share": _PART}),
    Choice("variable_seq_lengths", "True", {"loader:method": "[LD]oRA"}),
)
