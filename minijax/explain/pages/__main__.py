"""`python -m minijax.explain.pages`: see `command.py`."""

import sys

from minijax.explain.pages.command import main

if __name__ == "__main__":
    sys.exit(main())
