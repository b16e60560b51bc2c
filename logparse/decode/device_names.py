"""The device that a log names: by torch, a trainer, nvidia-smi, npu-smi, rocm-smi, JAX or Slurm.

Which device goes by the name is not decided here. The regexes are data: one row per spelling; a row above another is
the more exact one.
"""

from __future__ import annotations

from logparse.decode.versions import Spelling

_NAME = r"((?:NVIDIA|AMD|Ascend|Intel|Tesla|TPU|HPU)[^,'\"|\r]*?)"

DEVICE_SPELLINGS = (
    # The name after it is that of a device which the run does not use.
    Spelling(
        "device",
        "CPU capacity: ",
        r"\b(CPU) capacity: .+ with [0-9.]+ ?GiB",
        "torchtitan on a CPU",
        "[titan] - root - INFO - CPU capacity: NVIDIA A100-SXM4-80GB with 80.00GiB memory",
    ),
    Spelling(
        "device",
        " capacity: ",
        r"\b[A-Z]{2,5} capacity: (.+?)(?: \(\d+\))? with [0-9.]+ ?GiB",
        "torchtitan",
        "[rank0]:[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory",
    ),
    Spelling(
        "device",
        "Peak flops undefined for",
        r"Peak flops undefined for:? (.+?),",
        "torchtitan, nanochat",
        "Peak flops undefined for: NVIDIA GeForce RTX 5090, fallback to A100",
    ),
    Spelling(
        "device", "(UUID: ", r"^\s*GPU \d+: (.+?) \(UUID: ", "nvidia-smi -L", "GPU 0: NVIDIA B200 (UUID: GPU-0a1b)"
    ),
    Spelling(
        "device",
        "|   0  ",
        r"^\|\s+\d+\s+((?:NVIDIA|Tesla|Quadro)[^|]*?[^.|\s])\s+(?:On|Off)\s+\|",
        "nvidia-smi",
        "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:1B:00.0 Off |                    0 |",
    ),
    # nvidia-smi cuts a name of more than 18 letters. V100 SXM2 has one peak, whatever its memory.
    Spelling(
        "device",
        "V100-SXM2...",
        r"^\|\s+\d+\s+(Tesla V100-SXM2)\.\.\.\s+(?:On|Off)\s+\|",
        "nvidia-smi to 510",
        "|   0  Tesla V100-SXM2...  On   | 00000000:1B:00.0 Off |                    0 |",
    ),
    Spelling(
        "device",
        "] NVIDIA ",
        r"^\[\d+\] (NVIDIA [^|\r]*?)\s+\|\s+\d+\D?C, ",
        "gpustat",
        "[0] NVIDIA H100 80GB HBM3 | 41°C,  97 % | 70125 / 81559 MB | user(70100M)",
    ),
    Spelling(
        "device",
        "| OK ",
        r"^\|\s*\d+\s+((?:Ascend)?\d{3}[A-Z][A-Z0-9_-]*)\s*\|\s*OK\s",
        "npu-smi info",
        "| 0     910B3               | OK            | 93.7        38                0    / 0             |",
    ),
    *(
        Spelling("device", marker, rf"(?i:card series|device name):\s+{_NAME}\s*$", "rocm-smi, torch", sample)
        for marker, sample in (
            ("ard series:", "GPU[0]\t\t: Card series:\t\tAMD Instinct MI300X OAM"),
            ("ard Series:", "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI250X"),
            ("evice Name:", "Device Name: AMD Instinct MI300X"),
            ("evice name:", "Device name: NVIDIA A100-SXM4-80GB"),
        )
    ),
    *(
        Spelling("device", marker, rf"\b{marker}['\"]?\s*[:=]\s*['\"]?{_NAME}\s*(?:[,'\"|}}\)]|$)", source, sample)
        for marker, source, sample in (
            ("device_name", "torch's properties, as trainers print them", "device_name: NVIDIA A100-SXM4-80GB"),
            ("gpu_name", "torch's properties, as trainers print them", "{'gpu_name': 'NVIDIA H100 PCIe', 'gpus': 8}"),
            ("device_kind", "JAX", "device_kind: TPU v5 lite"),
        )
    ),
    Spelling(
        "device",
        "GPU: ",
        r"\bGPU: (NVIDIA [^|,\r]*?)(?:\. |\s*\||\s*$)",
        "nanochat, Unsloth",
        "GPU: NVIDIA H100 80GB HBM3 | Peak FLOPS (BF16): 9.89e+14",
    ),
    *(
        Spelling("device", marker, rf"{marker}[=: ]+['\"]?(v\d\w*?)-\d+\b", "XPK, gcloud", sample)
        for marker, sample in (
            ("tpu-type", "--tpu-type=v5p-128"),
            ("tpu_type", "tpu_type: v6e-256"),
            ("device-type", "--device-type=v5litepod-256"),
            ("accelerator-type", "--accelerator-type v5p-8"),
        )
    ),
    Spelling(
        "device",
        "accelerator_model_name",
        r'"accelerator_model_name": ?"([^"]+?)"',
        "MLPerf, the submitter's system",
        ':::SYSJSON {"number_of_nodes":"1","accelerator_model_name":"NVIDIA H200-SXM5-141GB"}',
    ),
    # Counts of nodes and devices, and a name of the submitter's own choice: only that of a device or a vendor's system.
    *(
        Spelling(
            "device",
            "submission_platform",
            r'"submission_platform", "value": "(?:[^"]*[-x])?\d+x?(?:NVIDIA |AMD )?(?:Instinct |[DH]GX )?'
            rf'((?:MI|[A-Z]{{1,2}})\d{{3}}X?{form})(?:[-_]OAM(?:[-_]\d+GB)?)?"',
            "MLPerf",
            sample,
        )
        for form, sample in (
            ("", ':::MLLOG {"key": "submission_platform", "value": "64xNVIDIA DGX H100", "metadata": {}}'),
            ("", ':::MLLOG {"key": "submission_platform", "value": "4xHOST9x4GB200", "metadata": {}}'),
            (
                r"[-_](?:SXM\d?|NVL)(?:[-_]\d+GB)?",
                ':::MLLOG {"key": "submission_platform", "value": "1xHOST-8xB200_SXM_180GB", "metadata": {}}',
            ),
        )
    ),
    *(
        Spelling("device", marker, pattern, source, sample)
        for marker, pattern, source, sample in (
            (
                "ds_accelerator to cpu",
                r"Setting ds_accelerator to (cpu)\b",
                "DeepSpeed",
                "[INFO] [real_accelerator.py:158:get_accelerator] Setting ds_accelerator to cpu (auto detect)",
            ),
            (
                "device_target",
                r"\bdevice_target['\"]?[:=] ?['\"]?(CPU)\b",
                "MindFormers",
                "'context': {'device_id': 0, 'device_target': 'CPU'},",
            ),
            (
                "falling back to CPU",
                r"No GPU/TPU found, falling back to (CPU)\b",
                "JAX",
                "WARNING:absl:No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 for more info.)",
            ),
        )
    ),
    # Processes that talk by gloo alone train on no accelerator.
    *(
        Spelling("device", marker, pattern, source, sample, meaning="CPU")
        for marker, pattern, source, sample in (
            (
                "with backend gloo",
                r"Initializing TorchBackend in DeepSpeed with backend (gloo)\b",
                "DeepSpeed",
                "[INFO] [comm.py:908:init_distributed] Initializing TorchBackend in DeepSpeed with backend gloo",
            ),
            (
                "distributed_backend ....",
                r"^\s*distributed_backend \.+ (gloo)\s*$",
                "Megatron-LM",
                "  distributed_backend ............................. gloo",
            ),
        )
    ),
    Spelling("device", "gpu:", r"\bgres(?:[/:=]|/)+gpu:([A-Za-z][\w-]*?)[:=]\d", "Slurm", "#SBATCH --gres=gpu:h100:8"),
)
