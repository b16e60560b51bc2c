"""From where on a figure is low or high, on the index and on the page of a run."""

from __future__ import annotations

# Shares of the device's peak, and of the clock.
OF_PEAK, OF_CLOCK = (0.30, 0.45), (0.80, 0.90)
LIMITS = {"mfu": OF_PEAK, "hfu": OF_PEAK, "goodput": OF_CLOCK}


def level_of(metric: str, share: float | None) -> str:
    """``low``, ``middle`` or ``high``; empty where ``metric`` has no limits or the share is unknown or impossible."""
    if share is None or metric not in LIMITS or share > 1:
        return ""
    low, high = LIMITS[metric]
    return "low" if share < low else "middle" if share < high else "high"
