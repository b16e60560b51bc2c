"""From what the user gave to a finished run: inputs, load, analyze, record, the sides of a comparison."""
