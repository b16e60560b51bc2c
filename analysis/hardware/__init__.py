"""Training devices and the peaks that MFU and HFU are measured against, as data with sources."""

from __future__ import annotations

# Which peak of a device, the default first.
BASES = ("matrix", "headline")
