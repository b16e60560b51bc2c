"""The rates that the first screen shows as the log prints them, where ours is unknown."""

from logparse.language import msg

TOKENS, TFLOPS = "tokens_per_second_per_device", "tflops_per_second_per_device"
# Printed rates that are shown where ours is unknown, the most telling one first.
PRINTED_RATES = {
    TOKENS: msg("{n} tokens/s/p"),
    "samples_per_second_per_device": msg("{n} samples/s/p (per device)"),
    "tokens_per_second": msg("{n} tokens/s of all devices"),
    "samples_per_second": msg("{n} samples/s of all devices"),
}
