"""Every answer of runs that are described, printed as six ages of frameworks print them, and worked out apart.

Of each age 3 histories in ``make test``, 84 in ``make audit``, 3,334 in ``make explore``: 18, 504, 20,004 of all.
"""

from collections.abc import Callable

import hypothesis
import pytest
from audit.drawn import Plan, as_before_core, as_mindformers, history_of, plans
from audit.held import hold
from audit.printers import BIGSCIENCE, CORE_0_8, CORE_0_18, MEGATRON_2_5, MINDFORMERS_1_5, NEOX, Megatron, MindFormers
from hypothesis import given

OF_EACH = {"same": 3, "audit": 84, "explore": 3_334}

drawn = hypothesis.settings(max_examples=OF_EACH[hypothesis.settings.get_current_profile_name()])


def as_it_is(plan: Plan) -> Plan:
    return plan


AGES: dict[str, tuple[Megatron | MindFormers, Callable[[Plan], Plan]]] = {
    "core 0.8": (CORE_0_8, as_it_is),
    "core 0.18": (CORE_0_18, as_it_is),
    "2.5": (MEGATRON_2_5, as_before_core),
    "BigScience": (BIGSCIENCE, as_before_core),
    "GPT-NeoX": (NEOX, as_before_core),
    "MindFormers 1.5": (MINDFORMERS_1_5, as_mindformers),
}


@pytest.mark.parametrize("age", AGES)
@drawn
@given(plan=plans())
def test_every_answer_is_that_of_the_history(age: str, plan: Plan) -> None:
    printer, adapted = AGES[age]
    hold(printer.print(history_of(adapted(plan))))
