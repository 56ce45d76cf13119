"""`python -m minijax.explain script.py:function` makes a page, as `python -m minijax.page` does."""

import runpy

if __name__ == "__main__":
    runpy.run_module("minijax.page", run_name="__main__", alter_sys=True)
