"""Histories that drawing found an answer wrong of, each as small as it was shrunk."""

from dataclasses import replace
from typing import Any

import pytest
from audit.drawn import MODELS, Plan, history_of
from audit.held import hold
from audit.histories import Layout, Recompute
from audit.test_audit import AGES

PLAIN = Plan(
    seed=0,
    model=MODELS[0],
    layout=Layout(1, 1),
    recompute=Recompute(),
    devices=(2,),
    log_interval=1,
    lines=(32,),
    step_seconds=0.4,
    fixed_share=0.0,
    noise=0.0,
    start_up=0.0,
    slow_first=(3.0,),
    stalls=0,
    skips=0,
    nans=0,
    ramp=False,
    ramp_shift=0,
    save_every=0,
    save_seconds=3.0,
    evaluate_every=0,
    evaluate_seconds=5.0,
    rest=0.0,
    falls_back=False,
)
FOUND: dict[str, tuple[str, dict[str, Any]]] = {
    "stamps cut to the second, of two steps of the last batch": ("core 0.8", {"ramp": True}),
    "the last batch came about within the only row of it": (
        "core 0.18",
        {"ramp": True, "ramp_shift": 3, "log_interval": 5, "lines": (30,)},
    ),
    "saves and evaluations that often lie in one row": (
        "2.5",
        {"devices": (2, 2, 2), "lines": (30, 60, 66), "save_every": 10, "evaluate_every": 25, "evaluate_seconds": 60.0},
    ),
    "the last batch came about within one of its rows": (
        "BigScience",
        {
            "devices": (2, 2),
            "log_interval": 5,
            "lines": (30, 30),
            "step_seconds": 31.25,
            "ramp": True,
            "ramp_shift": 3,
            "save_every": 20,
        },
    ),
    "a start that only events show, the first row of which is in the second": (
        "core 0.18",
        {"devices": (2, 2), "lines": (30, 30), "log_interval": 10, "slow_first": (20.0,), "events_only": True},
    ),
    "the log of a job of the chain is missing": (
        "core 0.8",
        {"devices": (2, 2, 2), "lines": (30, 30, 30), "step_seconds": 7.0, "missing": 1},
    ),
    "a save behind the last line is loaded": (
        "core 0.8",
        {"devices": (2, 2), "lines": (30, 30), "step_seconds": 7.0, "log_interval": 5, "tail": 2},
    ),
    "the clock is set ahead for good": ("MindFormers 1.5", {"lines": (38,), "set_ahead": 900.0}),
    "updates of the first row are skipped, and the last are not numbers": (
        "2.5",
        {"log_interval": 5, "first_skips": 2, "breaks": "vanished"},
    ),
    "summer time ends in a save, longer than any gap before": (
        "MindFormers 1.5",
        {"lines": (38,), "save_every": 20, "save_seconds": 40.0, "falls_back": True},
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_wrong_once_is_right(what):
    age, changes = FOUND[what]
    printer, adapted = AGES[age]
    hold(printer.print(history_of(adapted(replace(PLAIN, **changes)))))
