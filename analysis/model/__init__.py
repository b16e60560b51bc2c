"""The model: its shape, its parameters, and the catalogue of named ones."""
