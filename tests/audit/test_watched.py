"""Histories that are followed while they are printed: the last answer is that of the whole log.

Five of them in ``make test``, 500 in ``make explore``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
from audit.drawn import Plan, history_of, plans
from audit.held import PEAK
from audit.test_audit import AGES
from growing import hold_growth
from hypothesis import given
from hypothesis import strategies as st

from analysis.run.options import RunOptions

drawn = hypothesis.settings(max_examples=500 if hypothesis.settings.get_current_profile_name() == "explore" else 5)


@drawn
@given(age=st.sampled_from(sorted(AGES)), plan=plans(), seed=st.integers(0, 2**32))
def test_a_history_that_is_followed_is_answered_as_analyze_does(age: str, plan: Plan, seed: int) -> None:
    printer, adapted = AGES[age]
    text = printer.print(history_of(adapted(plan))).text
    with TemporaryDirectory() as folder:
        hold_growth(Path(folder), {"run.log": text.encode()}, seed, cuts=2, how=RunOptions(peak_tflops=PEAK))
