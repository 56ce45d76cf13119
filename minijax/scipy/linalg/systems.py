"""Systems of linear equations, inverses, determinants, and Sylvester's equation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import arguments
from minijax.lax.control_flow import fori_loop
from minijax.lax.linalg import matrices, solving
from minijax.lax.linalg.eig import eig
from minijax.lax.linalg.lu import lu_pivots_to_permutation
from minijax.lax.linalg.schur import schur as schur_form
from minijax.lax.linalg.triangular import triangular_solve
from minijax.numpy import linalg
from minijax.numpy.creation import asarray
from minijax.numpy.functional import vectorize
from minijax.numpy.matrices import eye
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import expand_dims
from minijax.scipy.linalg import operands
from minijax.scipy.linalg.factorizations import cholesky

_IGNORED = ("overwrite_b", "debug", "check_finite")
