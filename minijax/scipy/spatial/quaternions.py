"""Formulas of rotations as unit quaternions (x, y, z, w), along the last dimension of arrays.

All of them take one rotation or many, and are differentiable at the identity too: norms of vectors
that may be 0 are never divided by, nor differentiated.
"""

from __future__ import annotations

import math
from typing import Any

from minijax.core.aval import aval_of
from minijax.lax.binary import add, atan2, div, eq, gt, le, lt, mul, sub
from minijax.lax.special import epsilon
from minijax.lax.unary import abs, cos, neg, sin, sqrt, square
from minijax.numpy import arithmetic, contraction, joining, reductions, shaping
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where


def parts(x: Any) -> list[Any]:
    """The components along the last dimension."""
    return [x[..., i] for i in range(aval_of(x).shape[-1])]


def together(*components: Any) -> Any:
    """Components as the last dimension of one array."""
    return joining.stack(components, axis=-1)


def _length(*components: Any) -> tuple[Any, Any]:
    """The length of vectors, and where it is so small that its square is of no account.

    There the length is that of another vector, so that it has a derivative.
    """
    squared: Any = 0.0
    for x in components:
        squared = add(square(x), squared)
    small = lt(squared, epsilon(components[0]) * 1e-2)
    return sqrt(where(small, 1.0, squared)), small


@one_program()
def normalized(quat: Any) -> Any:
    """Quaternions of length 1."""
    squared = reductions.sum(square(quat), axis=-1, keepdims=True)
    return arithmetic.divide(quat, sqrt(squared))


@one_program()
def product(p: Any, q: Any) -> Any:
    """The rotation by `q`, then by `p`."""
    px, py, pz, pw = parts(p)
    qx, qy, qz, qw = parts(q)
    m, a, s = arithmetic.multiply, arithmetic.add, arithmetic.subtract
    return together(
        s(a(a(m(pw, qx), m(qw, px)), m(py, qz)), m(pz, qy)),
        s(a(a(m(pw, qy), m(qw, py)), m(pz, qx)), m(px, qz)),
        s(a(a(m(pw, qz), m(qw, pz)), m(px, qy)), m(py, qx)),
        s(s(s(m(pw, qw), m(px, qx)), m(py, qy)), m(pz, qz)),
    )


@one_program()
def canonical(quat: Any) -> Any:
    """Of the two quaternions of each rotation, the one with w >= 0."""
    return where(lt(quat[..., 3:], 0.0), neg(quat), quat)


@one_program()
def matrix_from_quat(quat: Any) -> Any:
    """Rotation matrices."""
    x, y, z, w = parts(quat)
    xx, yy, zz, ww = square(x), square(y), square(z), square(w)

    def twice(a: Any, b: Any, c: Any, d: Any, sign: float) -> Any:
        return mul(add(mul(a, b), mul(mul(c, d), sign)), 2.0)

    rows = [
        (sub(add(sub(xx, yy), ww), zz), twice(x, y, z, w, -1), twice(x, z, y, w, 1)),
        (twice(x, y, z, w, 1), sub(add(sub(yy, xx), ww), zz), twice(y, z, x, w, -1)),
        (twice(x, z, y, w, -1), twice(y, z, x, w, 1), add(sub(sub(zz, xx), yy), ww)),
    ]
    return joining.stack([together(*row) for row in rows], axis=-2)


@one_program()
def quat_from_matrix(matrix: Any) -> Any:
    """Quaternions of rotation matrices, from the largest of four candidates.

    Shepperd, Journal of Guidance and Control 1 (1978), 223.
    """
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = add(add(m[0][0], m[1][1]), m[2][2])
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row: list[Any] = [None] * 4
        row[i] = add(sub(1.0, trace), mul(m[i][i], 2.0))
        row[j] = add(m[j][i], m[i][j])
        row[k] = add(m[k][i], m[i][k])
        row[3] = sub(m[k][j], m[j][k])
        candidates.append(together(*row))
    differences = sub(m[2][1], m[1][2]), sub(m[0][2], m[2][0]), sub(m[1][0], m[0][1])
    candidates.append(together(*differences, add(trace, 1.0)))
    sizes = together(m[0][0], m[1][1], m[2][2], trace)
    place = reductions.argmax(sizes, axis=-1, keepdims=True)
    chosen = candidates[0]
    for i in (1, 2, 3):
        chosen = where(eq(place, i), candidates[i], chosen)
    return normalized(chosen)


@one_program()
def quat_from_rotvec(rotvec: Any) -> Any:
    """Quaternions of rotation vectors: axes, as long as the angles are."""
    x, y, z = parts(rotvec)
    squared = add(add(square(x), square(y)), square(z))
    angle, small = _length(x, y, z)
    # sin(a/2) / a and cos(a/2), and their series about 0.
    half = mul(angle, 0.5)
    scale = where(small, sub(0.5, mul(squared, 1 / 48)), div(sin(half), angle))
    w = where(small, sub(1.0, mul(squared, 1 / 8)), cos(half))
    return together(mul(x, scale), mul(y, scale), mul(z, scale), w)


@one_program()
def rotvec_from_quat(quat: Any) -> Any:
    """Rotation vectors, of angles up to π."""
    x, y, z, w = parts(canonical(quat))
    size, small = _length(x, y, z)
    squared = add(add(square(x), square(y)), square(z))
    angle = mul(atan2(size, w), 2.0)
    scale = where(small, add(2.0, mul(squared, 1 / 3)), div(angle, size))
    return together(mul(x, scale), mul(y, scale), mul(z, scale))


@one_program()
def magnitude_from_quat(quat: Any) -> Any:
    """The angles of rotations, from 0 to π."""
    x, y, z, w = parts(quat)
    size = sqrt(add(add(square(x), square(y)), square(z)))
    return mul(atan2(size, abs(w)), 2.0)


@one_program()
def mrp_from_quat(quat: Any) -> Any:
    """Modified Rodrigues parameters: axes, as long as the tangent of a quarter of the angle."""
    quat = canonical(quat)
    return arithmetic.divide(quat[..., :3], arithmetic.add(quat[..., 3:], 1.0))


@one_program()
def quat_from_mrp(mrp: Any) -> Any:
    """Quaternions of modified Rodrigues parameters."""
    squared = reductions.sum(square(mrp), axis=-1, keepdims=True)
    whole = joining.concatenate(
        [arithmetic.multiply(mrp, 2.0), arithmetic.subtract(1.0, squared)], axis=-1
    )
    return arithmetic.divide(whole, arithmetic.add(squared, 1.0))


@one_program(static=("axes", "intrinsic"))
def quat_from_euler(angles: Any, axes: tuple[int, ...], intrinsic: bool) -> Any:
    """The product of rotations about axes, by angles along the last dimension."""
    total = None
    for i, axis in enumerate(axes):
        half = mul(angles[..., i], 0.5)
        row: list[Any] = [mul(half, 0.0)] * 4
        row[axis], row[3] = sin(half), cos(half)
        turn = together(*row)
        if total is None:
            total = turn
        else:
            total = product(total, turn) if intrinsic else product(turn, total)
    return total


@one_program(static=("axes", "intrinsic"))
def euler_from_quat(quat: Any, axes: tuple[int, int, int], intrinsic: bool) -> Any:
    """Euler angles, the third of which is 0 where two axes fall together.

    Bernardes and Viollet, PLoS ONE 17 (2022), e0276302.
    """
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = float((i - j) * (j - k) * (k - i) // 2)
    q = parts(quat)
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], mul(q[k], sign)
    else:
        a, b = sub(q[3], q[j]), add(q[i], mul(q[k], sign))
        c, d = add(q[j], q[3]), sub(mul(q[k], sign), q[i])
    middle = mul(atan2(_hypot(c, d), _hypot(a, b)), 2.0)
    half_sum, half_difference = atan2(b, a), atan2(d, c)
    margin = 4 * epsilon(quat)
    at_zero = le(abs(middle), margin)
    at_pi = le(abs(sub(middle, math.pi)), margin)
    first, third = sub(half_sum, half_difference), add(half_sum, half_difference)
    if intrinsic:
        first, third = third, first
    turn = mul(half_difference, 2.0 if intrinsic else -2.0)
    alone = where(at_zero, mul(half_sum, 2.0), turn)
    degenerate = at_zero | at_pi
    first = where(degenerate, alone, first)
    third = where(degenerate, 0.0, third)
    if not symmetric:
        if intrinsic:
            first = mul(first, sign)
        else:
            third = mul(third, sign)
        middle = sub(middle, math.pi / 2)
    return together(_wrapped(first), middle, _wrapped(third))


def _hypot(x: Any, y: Any) -> Any:
    size, small = _length(x, y)
    return where(small, 0.0, size)


def _wrapped(angle: Any) -> Any:
    """An angle from -π to π."""
    turned = where(gt(angle, math.pi), sub(angle, 2 * math.pi), angle)
    return where(lt(angle, -math.pi), add(angle, 2 * math.pi), turned)


@one_program(static=("inverse",))
def applied(quat: Any, vectors: Any, inverse: bool) -> Any:
    """Vectors turned by rotations."""
    matrix = matrix_from_quat(quat)
    if inverse:
        matrix = shaping.swapaxes(matrix, -1, -2)
    return contraction.einsum("...ij,...j->...i", matrix, vectors)
