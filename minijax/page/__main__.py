"""`python -m minijax.page`: see `command.py`."""

import sys

from minijax.page.command import main

sys.exit(main())
