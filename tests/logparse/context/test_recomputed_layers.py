"""How many layers are recomputed whole, each case worked by hand in the frameworks' own way of counting."""

import pytest

from logparse.context.recomputed_layers import recomputed_layers

FULL = {"recompute": "full", "num_layers": 80, "pipeline_model_parallel_size": 8}
BLOCK = FULL | {"recompute_method": "block", "recompute_num_layers": 1}
VPP, PP = "virtual_pipeline_model_parallel_size", "pipeline_model_parallel_size"


@pytest.mark.parametrize(
    ("settings", "layers"),
    [
        ({}, 80),  # no method: every layer
        ({"recompute_method": "uniform", "recompute_num_layers": 4}, 80),  # chunks of 4, all of them
        (BLOCK, 8),  # the first of the 10 layers of each of 8 stages
        (BLOCK | {"recompute_num_layers": 0}, 0),
        (BLOCK | {"recompute_num_layers": 12}, 80),  # a stage has no more than 10
        (BLOCK | {VPP: 5}, 40),  # chunks of 2 layers, 5 in each of 8 stages: one of each
        (BLOCK | {VPP: 5, "recompute_num_layers": 3}, 80),
        (BLOCK | {VPP: 5, "recompute_per_stage": True}, 8),  # MindSpeed counts the stage
        (BLOCK | {PP: 1, "recompute_num_layers": 20}, 20),
        ({"noop_layers": "{0, 79}"}, 78),
        (BLOCK | {"noop_layers": "{0, 79}"}, 7),  # the first stage recomputes a layer that does nothing
        (BLOCK | {"noop_layers": "{2, 79}", VPP: 5}, 39),
        # 6 + 6 x 12 + 2: 4 of the first, 4 of each in the middle, the 2 of the last.
        (BLOCK | {"first_stage_layers": 6, "last_stage_layers": 2, "recompute_num_layers": 4}, 4 + 6 * 4 + 2),
        ({"recompute_by_stage": "[1, 0, 0, 0, 0, 0, 0, 3]"}, 4),
        ({"recompute_by_stage": "[12, 0, 0, 0, 0, 0, 0, True]"}, 20),  # no more than 10; all 10
        # Two interleaves of chunks of 5: 2 x 5 of the first stage, though 7 is asked, and 1 of the last.
        ({"recompute_by_stage": "[[7, 0, 0, 0, 0, 0, 0, 0], [True, 0, 0, 0, 0, 0, 0, 1]]"}, 5 + 5 + 1),
        # 83 layers: 10 a stage, and the offset gives three stages one more, of which the first recomputes 11.
        (
            {
                "num_layers": 83,
                "recompute_by_stage": "[12, 1, 1, 1, 1, 1, 1, 1]",
                "pipeline_offset": "[1,1,1,0,0,0,0,0]",
            },
            18,
        ),
    ],
)
def test_layers_recomputed_whole(settings, layers):
    assert recomputed_layers(FULL | settings) == layers


@pytest.mark.parametrize(
    "settings",
    [
        BLOCK | {PP: 7},  # 80 layers do not go into 7 stages
        BLOCK | {VPP: 3},
        BLOCK | {VPP: 5, "recompute_per_stage": True, "noop_layers": "79"},  # which chunk holds it?
        BLOCK | {"pipeline_layout": "Et*10|t*70L"},
        {name: value for name, value in BLOCK.items() if name != PP},
        {name: value for name, value in BLOCK.items() if name != "recompute_num_layers"},
        FULL | {"recompute_scheme": "56"},
        FULL | {"recompute": "selective"},
        FULL | {"recompute_by_stage": "[1, 2]"},  # of 8 stages
        FULL | {"recompute_by_stage": "[[1, 2"},
        FULL | {"recompute_by_stage": "['a', 'b']"},
        FULL | {"recompute_by_stage": "[" * 100_000},
        FULL | {"num_layers": 83, "recompute_by_stage": "[1, 1, 1, 1, 1, 1, 1, 1]"},  # where are the other 3?
    ],
)
def test_what_is_not_understood_is_not_guessed(settings):
    assert recomputed_layers(settings) is None
