"""Why a run stopped, as its log says it."""
