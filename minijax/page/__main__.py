"""`python -m minijax.page`: see `command.py`."""

import sys

from minijax.page.command import main

if __name__ == "__main__":
    sys.exit(main())
