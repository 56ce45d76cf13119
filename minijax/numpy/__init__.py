"""Interim."""
from minijax.numpy import operators as _operators
from minijax.numpy.arithmetic import abs, absolute, add, cbrt, clip, divide, divmod, fabs, float_power, floor_divide, fmax, fmin, fmod, heaviside, hypot, maximum, minimum, mod, multiply, negative, positive, pow, power, reciprocal, remainder, sign, sqrt, square, subtract, true_divide
from minijax.numpy.constants import e, euler_gamma, inf, nan, newaxis, pi
from minijax.numpy.contraction import dot, einsum, einsum_path, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat
from minijax.numpy.creation import array, asarray, astype, copy, empty, empty_like, from_dlpack, frombuffer, fromfile, fromiter, fromstring, full, full_like, ones, ones_like, zeros, zeros_like
from minijax.numpy.elementary import acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin, asinh, atan, atan2, atanh, ceil, conj, conjugate, cos, cosh, deg2rad, degrees, exp, exp2, expm1, floor, i0, imag, log, log10, log1p, log2, logaddexp, logaddexp2, rad2deg, radians, real, rint, round, sin, sinc, sinh, tan, tanh, trunc
from minijax.numpy.floats import copysign, frexp, ldexp, modf, nan_to_num, nextafter, signbit, spacing
from minijax.numpy.joining import append, array_split, block, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, pad, split, stack, unstack, vsplit, vstack
from minijax.numpy.logic import allclose, array_equal, array_equiv, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, equal, greater, greater_equal, invert, isclose, iscomplex, iscomplexobj, isfinite, isinf, isnan, isneginf, isposinf, isreal, isrealobj, isscalar, left_shift, less, less_equal, logical_and, logical_not, logical_or, logical_xor, not_equal, right_shift
from minijax.numpy.matrices import diag, diag_indices, diag_indices_from, diagflat, diagonal, eye, identity, indices, mask_indices, meshgrid, trace, tri, tril, tril_indices, tril_indices_from, triu, triu_indices, triu_indices_from, vander
from minijax.numpy.promotion import broadcast_shapes, broadcast_to, inexact
from minijax.numpy.ranges import arange, fromfunction, geomspace, linspace, logspace
from minijax.numpy.reductions import all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum, max, mean, min, prod, ptp, std, sum, var
from minijax.numpy.selection import argpartition, argsort, argwhere, choose, compress, digitize, extract, flatnonzero, lexsort, nonzero, partition, put_along_axis, searchsorted, select, sort, take, take_along_axis, where
from minijax.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, expand_dims, flip, fliplr, flipud, matrix_transpose, moveaxis, permute_dims, ravel, repeat, reshape, resize, roll, rollaxis, rot90, squeeze, swapaxes, tile, transpose

from minijax.core.dtypes import *
from minijax.core import dtypes as _d
from minijax.runtime.array import Array as ndarray
globals().update(_d.SCALAR_TYPES)
bool=_d.SCALAR_TYPES["bool_"]
from numpy import floating, integer, inexact, complexfloating, number, signedinteger, unsignedinteger, generic, dtype
def size(x): return x.size
def shape(x): return x.shape
def ndim(x): return x.ndim
