"""Releases: every run kept, two sides compared, a verdict, and the course over time.

``records`` turns an analysed run into a row and a frame, ``history`` keeps them on a ``shelf``, ``selection`` picks
some, ``evidence`` says which of them count, ``comparable`` whether two sides may be compared, ``verdict`` whether they
differ, ``comparison`` puts that together, ``exports`` writes it for other tools, ``trend`` finds where a series of runs
changed. Only frames come in; what people read is written in ``logparse.commands``.
"""
