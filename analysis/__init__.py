"""Frames in, numbers and pictures out. Nothing here reads log text."""

from pkgutil import extend_path

# A folder ``analysis`` of the user on the path keeps its own modules importable; ours are found first.
__path__ = extend_path(__path__, __name__)
