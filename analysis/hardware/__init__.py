"""Training devices and the peaks that MFU and HFU are measured against, as data with sources."""
