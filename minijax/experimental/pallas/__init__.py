"""The state language of kernels: scratch memory, semaphores, copies and cores, simulated.

Names of jax.experimental.pallas (0.10) for programs that change references: what a kernel for a
device with cores says beside its arithmetic.  On a host the cores run one after the other in a
compiled loop, and mistakes in the use of copies are found before.  There is no kernel compiler
here: no `pallas_call`, and no code for one kind of device.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
