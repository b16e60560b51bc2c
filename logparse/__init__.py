"""Read the text log of a large-model training run."""
