"""`python -m minijax.explain script.py:function` makes the page of a function."""

import runpy

if __name__ == "__main__":
    runpy.run_module("minijax.explain.pages", run_name="__main__", alter_sys=True)
