"""fairseq with ``log_format`` json, and metaseq (OPT): ``train_inner | {"epoch": 1, "update": 0.027, "loss": "16.475", ...}``.

The same values as in ``fairseq``, each a string of six digits at most. A logger may leave the words before the record out.
"""

from logparse.formats._base import NUMBER, LogFormat, Sample, evaluation
from logparse.formats.fairseq import CHOICES, LABELS, NAMES, OTHERS, RECORDS, SENTENCES

FORMAT = LogFormat(
    name="fairseq-json",
    title="fairseq, metaseq (log_format json)",
    framework="fairseq or metaseq",
    traces=(r"\bmetaseq(?:_cli|[/.](?:cli|trainer|tasks|models))[/.]?",),
    marker=("train_inner | {", '"num_updates": '),
    head=r'(?:\btrain_inner \| \{"epoch": (?P<epoch>\d+)|^\{"epoch": \d+, "update": [\d.]+), ',
    pair=r'"([^"]+)": "?([^",}]*)"?(?:, |\})',
    separator=r"[,}]",
    labels=LABELS,
    ignored_patterns=OTHERS,
    required=("step",),
    records=(
        *RECORDS,
        evaluation(
            ' | {"epoch": ', rf'\| (?P<dataset>valid[^| ]*) \| \{{"epoch": \d+, "[^"]*_loss": "(?P<loss>{NUMBER})"'
        ),
    ),
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            '2026-03-02 12:32:33 | INFO | train_inner | {"epoch": 1, "update": 0.004, "loss": "16.446", "ppl": "3.9e+07", '
            '"wps": "288.7", "ups": "0.02", "wpb": "16384", "bsz": "8", "num_updates": "2", "lr": "4e-05", '
            '"gnorm": "19.777", "loss_scale": "4", "train_wall": "57", "gb_free": "9.3", "wall": "161"}',
            {
                "timestamp": "2026-03-02T12:32:33",
                "step": 2,
                "epoch": 1,
                "loss": 16.446,
                "logged_tokens_per_second": 288.7,
                "global_batch_size": 8,
                "learning_rate": 4e-05,
                "grad_norm": 19.777,
                "loss_scale": 4.0,
                "runtime_seconds": 161.0,
            },
        ),
        Sample(
            '{"epoch": 1, "update": 0.004, "loss": "16.446", "wps": "288.7", "ups": "0.02", "wpb": "16384", "bsz": "8", '
            '"num_updates": "2", "lr": "4e-05", "gnorm": "19.75", "train_wall": "57", "wall": "161"}',
            {
                "step": 2,
                "loss": 16.446,
                "logged_tokens_per_second": 288.7,
                "global_batch_size": 8,
                "learning_rate": 4e-05,
                "grad_norm": 19.75,
                "runtime_seconds": 161.0,
            },
        ),
        Sample(
            '2026-03-02 19:09:24 | INFO | train_inner | {"epoch": 1, "gnorm_layer0": "0.00647", "actv_norm": "8.47", '
            '"docsperex": "7.27", "loss": "13.702", "ppl": "13326", "wps": "104858", "ups": "0.1", "wpb": "1.04858e+06", '
            '"bsz": "512", "num_updates": "10", "lr": "1e-05", "gnorm": "0.93", "clip": "0", "loss_scale": "8", '
            '"train_wall": "99", "cuda_gb_allocated": "10.4", "wall": "105"}',
            {
                "timestamp": "2026-03-02T19:09:24",
                "step": 10,
                "epoch": 1,
                "loss": 13.702,
                "logged_tokens_per_second": 104858.0,
                "global_batch_size": 512,
                "learning_rate": 1e-05,
                "grad_norm": 0.93,
                "loss_scale": 8.0,
                "runtime_seconds": 105.0,
            },
        ),
    ),
)
