"""Numbers with names, and the mark for new dimensions."""

from __future__ import annotations

import math

e = math.e
euler_gamma = 0.5772156649015328606
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi
