"""What a training job should need and give, before it runs: size, memory, operations, time, devices.

Comes in: a model's shape, a layout, a device. Goes out: figures, each with its formula and the numbers in it.
Nothing here is measured; ``analysis.run.checks.expectations`` compares it with what was.
"""
