"""What a command works with: flags, the file of --config, the environment, the project file. The strongest wins."""

from __future__ import annotations

# The least share of the peak that anybody plans.
LEAST_UTILISATION = 0.01
