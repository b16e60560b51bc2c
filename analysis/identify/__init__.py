"""What a printed TFLOP/s or MFU means: by which formula, against which peak. Told from the numbers alone.

Comes in: step rows and what is known of the run. Goes out: an answer with the evidence for it and one sentence. The
framework's name plays no part.
"""

from __future__ import annotations

from analysis.identify._fit import LOGGED, TIME, Rounding, measure_rounding
from analysis.identify._formula import Candidate, Identification, identify_formula
from analysis.identify._peak import ImpliedPeak, implied_peak

__all__ = [
    "LOGGED",
    "TIME",
    "Candidate",
    "Identification",
    "ImpliedPeak",
    "Rounding",
    "identify_formula",
    "implied_peak",
    "measure_rounding",
]
