"""Laws of collectives and per-device programs, as functions that can be tried on one's own.

`LAWS` is the catalogue.  `check_collectives(psum=my_psum)` tries what is said of single
collectives, `check_all(f, mesh, in_specs, out_specs, *args)` what is said of programs; each law is
also a function by itself, of a `Case` or of a `DeviceProgram`.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
