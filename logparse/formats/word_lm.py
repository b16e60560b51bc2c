"""Word language models of pytorch/examples and Transformer-XL: ``| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch  5.12 | loss  7.61 | ppl  2021.43``.

``ms/batch`` is the mean of the batches since the line before. Transformer-XL prints the step of the run: ``| epoch   1 step      200 |
200 batches | lr 0.00025 | ms/batch 280.45 | loss  6.80``.

Source: pytorch/examples, word_language_model/main.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Sample, evaluation

FORMAT = LogFormat(
    name="word-lm",
    title="pytorch/examples word language model, Transformer-XL",
    framework="pytorch/examples",
    pauses_inside=False,
    rate_covers="interval",
    marker=("| ms/batch ",),
    head=(
        r"\| epoch +(?P<epoch>\d+) (?:step +(?P<step>\d+) )?\| *(?:(?P<step_in_epoch>\d+)/ *(?P<steps_per_epoch>\d+)|\d+) batches "
        rf"\| lr +(?P<learning_rate>{NUMBER}) \| ms/batch +(?P<elapsed_time_per_iteration_ms>{NUMBER}) \| loss +(?P<loss>{NUMBER}) "
    ),
    pair="",
    labels={},
    records=(evaluation("| valid loss ", rf"\| valid loss +(?P<loss>{NUMBER}) ", "valid"),),
    samples=(
        Sample(
            "| epoch   2 |   200/ 2983 batches | lr 20.00 | ms/batch  5.12 | loss  7.61 | ppl  2021.43",
            {
                "step": 3183,
                "epoch": 2,
                "step_in_epoch": 200,
                "steps_per_epoch": 2983,
                "learning_rate": 20.0,
                "elapsed_time_per_iteration_ms": 5.12,
                "loss": 7.61,
            },
        ),
        Sample(
            "| epoch   1 step      200 |    200 batches | lr 0.00025 | ms/batch 280.45 | loss  6.80 | ppl   897.100",
            {
                "step": 200,
                "epoch": 1,
                "learning_rate": 0.00025,
                "elapsed_time_per_iteration_ms": 280.45,
                "loss": 6.8,
            },
        ),
    ),
)
