"""A differential fuzzer: random programs on minijax and on JAX, which must agree.

`python -m tools.fuzz`, or `make fuzz`, draws programs (`draw.py`) of calls (`calls.txt`,
`calls.py`) and of transformations and control flow (`functions.py`), runs them in a process for
each library, compares what they give (`compare.py`), and makes those that differ small
(`shrink.py`).
"""
