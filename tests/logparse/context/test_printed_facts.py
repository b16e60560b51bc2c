"""Facts of a run that formats print outside their step lines: devices, batch, length, layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.run.load import load
from analysis.run.options import RunOptions

VERL_STEP = (
    "(TaskRunner pid=7) step:{n} - actor/pg_loss:0.01 - timing_s/gen:4.5 - timing_s/step:9.5 - perf/throughput:50.5"
)
VERL = """\
(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'ppo_mini_batch_size': 16,
(TaskRunner pid=7)  'algorithm': {'adv_estimator': 'grpo',
(TaskRunner pid=7)  'reward_model': {'enable': False,
(TaskRunner pid=7)                   'n_gpus_per_node': 0,
(TaskRunner pid=7)                   'nnodes': 0},
(TaskRunner pid=7)  'trainer': {'balance_batch': True,
(TaskRunner pid=7)              'n_gpus_per_node': 4,
(TaskRunner pid=7)              'nnodes': 2}}
(WorkerDict pid=9) Model config after override: Qwen2Config {
(WorkerDict pid=9)   "num_hidden_layers": 12,
(WorkerDict pid=9) }
(WorkerDict pid=9) Model config after override: Qwen2Config {
(WorkerDict pid=9)   "num_hidden_layers": 28,
(WorkerDict pid=9)   "vision_config": {
(WorkerDict pid=9)     "num_hidden_layers": 32,
(WorkerDict pid=9)   }
(WorkerDict pid=9) }"""
VERL_SFT = """\
+ torchrun --standalone --nnodes=1 --nproc_per_node=2 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet
{'data': {'train_batch_size': 96, 'micro_batch_size': 4, 'max_length': 1024}, 'model': {'trust_remote_code': False}}"""

INTERN_STEP = (
    "2024-03-01 10:00:0{n},000\tINFO train.py:1 in record -- tflops=150.5 step={n} loss=9.5 "
    "tgs (tokens/gpu/second)=3500.5 lr=1e-05 num_consumed_tokens=65536"
)
INTERN = """\
2024-03-01 10:00:00,000\tINFO launch.py:1 in check -- seq_len: 4096
2024-03-01 10:00:00,000\tINFO launch.py:1 in check -- micro_num: 4
2024-03-01 10:00:00,000\tINFO launch.py:1 in check -- micro_bsz: 2
2024-03-01 10:00:00,000\tINFO launch.py:1 in check -- pack_sample_into_one: False
2024-03-01 10:00:00,000\tINFO launch.py:1 in check -- valid_micro_num: 8"""

TITAN_STEP = (
    "[titan] 2025-08-05 11:20:3{n},801 - root - INFO - step:  {n}  loss: 12.25  grad_norm:  2.04  "
    "memory: 43.25GiB(54.67%)  tps: 766  tflops: 44.34  mfu: 4.48%"
)

SWIFT_STEP = (
    "{{'loss': 1.5, 'grad_norm': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1, "
    "'global_step/max_steps': '{n}/9', 'elapsed_time': '{n}s'}}"
)
SWIFT = """\
[INFO:swift] rank: -1, local_rank: -1, world_size: 1, local_world_size: 1
[INFO:swift] args: SftArguments(
gradient_accumulation_steps=8,
max_length=2048,
per_device_eval_batch_size=1,
per_device_train_batch_size=2,
sequence_parallel_size=1,
)
[INFO:swift] model_info: ModelInfo(model_type='qwen2_5', max_model_len=32768, config=Qwen2Config {
  "model_type": "qwen2",
  "num_hidden_layers": 24,
}
, task_type='causal_lm')
[INFO:swift] model_parameter_info: PeftModelForCausalLM: 496.2M Params (2.1M Trainable [0.4%]), 0.0M Buffers."""

TUNE_STEP = "Step {n} | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:640.25"
TUNE = """\
Running FullFinetuneRecipeDistributed with resolved config:

batch_size: 2
dataset:
  _component_: torchtune.datasets.alpaca_dataset
  packed: {packed}
gradient_accumulation_steps: 4
tokenizer:
  max_seq_len: 4096
"""

DEEPSPEED_STEP = "[2023-04-18 01:46:0{n},000] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0, lr=[1e-05]"
CHAT = "cmd = deepspeed main.py --data_split 2,4,4 --per_device_train_batch_size 8 --max_seq_len 512"

MLPERF_STEP = (
    ':::MLLOG {{"time_ms": 175986119{n}000, "key": "tracked_stats", "value": {{"train_step_time": 1.5, '
    '"reduced_train_loss": 7.5}}, "metadata": {{"file": "a.py", "lineno": 4, "step": {n}.0, "samples_count": {n}8.0}}}}'
)
MLPERF = ':::MLLOG {{"time_ms": 1759861190000, "key": "submission_platform", "value": "{0}", "metadata": {{}}}}'

FLAVOR = """\
[titan] 2026-05-04 06:01:47,756 - root - INFO - Building kimi_linear kimi_436m with {
  "num_hidden_layers": 16,
  "hidden_size": 1168
}"""
TITAN_STEP = (
    "[titan] 2026-05-04 06:02:0{n},000 - root - INFO - step:  {n}  loss:  8.5  memory:  1.5GiB(2.5%)  tps: 3,000"
)
TITAN = "[titan] 2026-05-04 06:02:00,000 - root - INFO - "
FORMERS_STEP = (
    "2026-05-04 06:02:0{n},000 - mindformers[mindformers/core/callback/callback.py:1] - INFO - {{ Epoch:[  1/  2], "
    "step:[    {n}/   10], loss: 5.5, per_step_time: 1500ms, lr: 1e-05, overflow cond: False, loss_scale: 1.0"
)
NAMED = (
    "2026-05-04 06:02:00,000 - mindformers[base_trainer.py:85] - INFO - "
    "Now Running Task is: text_generation, Model is: {}"
)
EXPERTS = "2026-05-04 06:02:00,000 - mindformers[parallel_config.py:1] - INFO - initial moe_config from dict: "
LITGPT_STEP = "Epoch 1 | iter {n} step {n} | loss train: 1.5, val: n/a | iter time: 500.50 ms (step)"

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "verl": (VERL, VERL_STEP, {"world_size": 8, "num_layers": 28, "mixed_step": "rollouts", "global_batch_size": None}),
    "verl-sft": (
        VERL_SFT,
        "step:{n} - train/loss:0.5 - train/lr(1e-3):0.004",
        {"world_size": 2, "global_batch_size": 96},
    ),
    "internevo": (
        INTERN,
        INTERN_STEP,
        {"seq_length": 4096, "micro_batch_size": 2, "num_microbatches": 4, "packed_documents": True},
    ),
    "internevo-sizes": (
        'HIDDEN_SIZE = 512\nNUM_ATTENTION_HEAD = 8\nNUM_LAYER = 6\nVOCAB_SIZE = 9000\n    dtype="torch.half",',
        INTERN_STEP,
        {"hidden_size": 512, "num_attention_heads": 8, "num_layers": 6, "vocab_size": 9000, "precision": "fp16"},
    ),
    "internevo-later-snippet": (
        '    checkpoint=False,\n    dtype="torch.half",\n    checkpoint=True,\n    dtype="torch.bfloat16",',
        INTERN_STEP,
        {"precision": "fp16", "recompute": "none"},
    ),
    "internevo-recomputed": ("    checkpoint=1.0,", INTERN_STEP, {"recompute": "full"}),
    "internevo-partly": ("    checkpoint=0.5,", INTERN_STEP, {"recompute": None}),
    "torchtitan-unmixed": (
        "[titan] 2025-08-05 11:20:14,101 - root - INFO - Mixed precision training is disabled",
        TITAN_STEP,
        {"precision": "fp32"},
    ),
    "internevo-file": ("    SEQ_LEN = 2048\n    seq_len=SEQ_LEN,", INTERN_STEP, {"seq_length": 2048}),
    "ms-swift": (
        SWIFT,
        SWIFT_STEP,
        {"world_size": 1, "global_batch_size": 16, "num_layers": 24, "lora": True, "seq_length": None}
        | {"adapter_parameters": 2_100_000},
    ),
    "ms-swift-json": (
        '{"model_parameter_info": "PeftModelForCausalLM: 8212.5588M Params (21.8235M Trainable [0.2657%])"}',
        SWIFT_STEP,
        {"lora": True, "adapter_parameters": 21_823_500},
    ),
    "ms-swift-full": (
        "[INFO:swift] model_parameter_info: Qwen2ForCausalLM: 494.0328M Params (494.0328M Trainable [100.0%])",
        SWIFT_STEP,
        {"lora": None, "adapter_parameters": None},
    ),
    "ms-swift-frozen": (
        "[INFO:swift] model_parameter_info: Qwen2ForCausalLM: 494.0328M Params (2.1M Trainable [0.4%]), 0.0M Buffers.",
        SWIFT_STEP,
        {"lora": None, "adapter_parameters": None},
    ),
    "ms-swift-peft": (
        "trainable params: 2,199,552 || all params: 496,232,320 || trainable%: 0.4433",
        SWIFT_STEP,
        {"lora": True, "adapter_parameters": 2_199_552},
    ),
    "llama-cookbook-peft": (
        "trainable params: 3,407,872 || all params: 8,033,669,120 || trainable%: 0.0424",
        "Training Epoch: 1/1, step {n}/9 completed (loss: 0.68): 11%|█ | {n}/9 [00:0{n}<00:09,  1.00s/it]",
        {"lora": True, "adapter_parameters": 3_407_872},
    ),
    # By its own count the batch is another one.
    "ms-swift-sp": (SWIFT.replace("size=1,\n)", "size=2,\n)"), SWIFT_STEP, {"global_batch_size": None}),
    "torchtune-packed": (
        TUNE.format(packed="true"),
        TUNE_STEP,
        {"seq_length": 4096, "micro_batch_size": 2, "num_microbatches": 4, "packed_documents": True},
    ),
    "torchtune-not-packed": (TUNE.format(packed="false"), TUNE_STEP, {"seq_length": None, "packed_documents": None}),
    "torchtune-lora": (
        "$ tune run lora_finetune_single_device --config llama3_2/3B_lora_single_device",
        TUNE_STEP,
        {"lora": True, "world_size": 1},
    ),
    "torchtune-lora-class": (
        "Running LoRAFinetuneRecipeDistributed with resolved config:",
        TUNE_STEP,
        {"lora": True, "world_size": None},
    ),
    "deepspeed-chat": (CHAT, DEEPSPEED_STEP, {"seq_length": 512, "micro_batch_size": 8}),
    "deepspeed-command": (
        "+ deepspeed --num_gpus 8 --num_nodes=2 --master_addr m1 train.py",
        DEEPSPEED_STEP,
        {"world_size": 16, "num_nodes": 2},
    ),
    "deepspeed-chat-model": (
        f"{CHAT} --model_name_or_path facebook/opt-1.3b",
        DEEPSPEED_STEP,
        {"model_name": "opt-1.3b"},
    ),
    # Its samples are pairs of answers.
    "deepspeed-zero3": (
        "[INFO] [partition_parameters.py:3:__exit__] finished initializing model - num_params = 291, num_elems = 7.24B",
        DEEPSPEED_STEP,
        {"model_parameters": 7_240_000_000},
    ),
    "deepspeed-zero3-2022": (
        "[INFO] [partition_parameters.py:3:__exit__] finished initializing model with 6.74B parameters",
        DEEPSPEED_STEP,
        {"model_parameters": 6_740_000_000},
    ),
    "deepspeed-pipeline": (
        "[INFO] [engine.py:16:__init__] RANK=0 STAGE=0 LAYERS=16 [0, 16) STAGE_PARAMS=1903 (0.002M) TOTAL_PARAMS=7615 "
        "(0.008M) UNIQUE_PARAMS=7605 (0.008M)",
        DEEPSPEED_STEP,
        {"model_parameters": 7605},
    ),
    "paddlenlp": (
        "[2023-04-13 22:24:36,053] [    INFO] - model_name_or_path            :utc-base",
        "[2023-04-13 22:24:5{n},556] [    INFO] - loss: 1.4, learning_rate: 5e-06, global_step: {n}0, "
        "interval_runtime: 2.5, interval_samples_per_second: 256.0, interval_steps_per_second: 4.0, epoch: 0.{n}",
        {"model_name": "utc-base"},
    ),
    "deepspeed-chat-reward": (CHAT + " --num_padding_at_beginning 1", DEEPSPEED_STEP, {"seq_length": None}),
    "accelerate": (
        "\t`--num_processes` was set to a value of `3`",
        "{{'loss': 1.25, 'learning_rate': 1e-05, 'epoch': 0.{n}}}\n {n}0%|#   | {n}/10 [00:0{n}<00:09,  1.00s/it]",
        {"world_size": 3},
    ),
    "mlperf-dgx": (
        MLPERF.format("64xNVIDIA DGX H100"),
        MLPERF_STEP,
        {"world_size": 512, "num_nodes": 64, "device_name": "H100"},
    ),
    "mlperf-devices-of-a-node": (
        MLPERF.format("4xHOST9x4GB200"),
        MLPERF_STEP,
        {"num_nodes": 4, "world_size": 16, "device_name": "GB200"},
    ),
    "mlperf-other": (
        MLPERF.format("4xG593-SD1"),
        MLPERF_STEP,
        {"num_nodes": 4, "world_size": None, "device_name": None},
    ),
    "litgpt-finetune": (
        "{'train': TrainArgs(global_batch_size=8, micro_batch_size=1, epochs=2, max_tokens=None, max_seq_length=512)}",
        LITGPT_STEP,
        {"seq_length": 512, "variable_seq_lengths": True},
    ),
    "litgpt-pretrain": (
        "{'train': TrainArgs(global_batch_size=8, micro_batch_size=1, epochs=None, max_tokens=9, max_seq_length=512)}",
        LITGPT_STEP,
        {"seq_length": 512, "variable_seq_lengths": None},
    ),
    "torchtitan": (FLAVOR, TITAN_STEP, {"num_layers": 16}),
    "torchtitan-mxfp8": (
        TITAN + "Converted modules to use dynamic mxfp8_rceil quantization for grouped_mm and linear ops",
        TITAN_STEP,
        {"precision": "fp8"},
    ),
    "torchtitan-fp4": (
        TITAN + "Converted modules to use dynamic nvfp4 quantization for linear ops",
        TITAN_STEP,
        {"precision": "fp4"},
    ),
    # The linear layers keep their type, which is not printed.
    "torchtitan-experts": (
        TITAN
        + "Converted MoE layers matching FQNS ['experts'] to use dynamic float8_rowwise quantization for grouped_mm",
        TITAN_STEP,
        {"precision": None},
    ),
    "torchtitan-float8": (
        TITAN + "Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=False",
        TITAN_STEP,
        {"precision": "fp8"},
    ),
    "mindformers-family": (NAMED.format("gpt2"), FORMERS_STEP, {"model_name": "gpt2", "num_layers": None}),
    "mindformers-model": (NAMED.format("llama2_7b"), FORMERS_STEP, {"model_name": "llama2_7b", "num_layers": 32}),
    **{
        f"torchtune-{path}": (
            f"  _component_: torchtune.models.{path}",
            TUNE_STEP,
            {"model_name": name, "num_layers": 32},
        )
        for path, name in (
            ("llama3_1.llama3_1_8b", "llama3_1_8b"),
            ("llama2.lora_llama2_7b", "llama2_7b"),
            ("llama3.qlora_llama3_8b", "llama3_8b"),
        )
    },
    "torchtune-tokenizer": (
        "  _component_: torchtune.models.llama3.llama3_tokenizer",
        TUNE_STEP,
        {"model_name": None, "num_layers": None},
    ),
    "mindformers-capacity": (
        EXPERTS + "{'expert_num': 8, 'capacity_factor': 1.1, 'num_experts_chosen': 2, 'use_gmm': False}",
        FORMERS_STEP,
        {"moe_capacity_factor": 1.1, "uncounted": None},
    ),
    "mindformers-grouped": (
        EXPERTS + "{'expert_num': 8, 'capacity_factor': 1.1, 'use_gmm': True}",
        FORMERS_STEP,
        {"moe_capacity_factor": None},
    ),
    "mindformers-dense": (
        EXPERTS + "{'expert_num': 1, 'capacity_factor': 1.1}",
        FORMERS_STEP,
        {"moe_capacity_factor": None},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_printed_facts_are_known(case: str, tmp_path: Path) -> None:
    head, step, expected = CASES[case]
    log = tmp_path / "run.log"
    log.write_text("\n".join((head, *(step.format(n=n) for n in range(1, 6)))) + "\n")
    context = load([str(log)], RunOptions()).context
    assert {name: context.get(name) for name in expected} == expected


def test_each_training_of_a_file_has_its_own_plan(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    head = "[titan] 2025-08-05 11:20:14,101 - root - INFO - Trainer is initialized with a batch, total steps {n}"
    steps = [TITAN_STEP.format(n=n) for n in range(1, 4)]
    log.write_text("\n".join([head.format(n=900), *steps, head.format(n=700), *steps]) + "\n")
    assert load([str(log)], RunOptions()).log.steps["train_steps"].to_list() == [900] * 3 + [700] * 3
