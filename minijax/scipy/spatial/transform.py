"""Rotations in three dimensions as unit quaternions (x, y, z, w), and interpolation between them.

Formulas take one rotation or many, along the last dimension of arrays, and are differentiable at
the identity too: norms of vectors that may be 0 are never divided by, nor differentiated.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import source
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import linalg
from minijax.lax.binary import atan2
from minijax.lax.special import epsilon
from minijax.lax.unary import abs, cos, sin, sqrt, square
from minijax.numpy import creation, elementary, joining, reductions, shaping
from minijax.numpy.contraction import einsum
from minijax.numpy.ordering import searchsorted
from minijax.numpy.promotion import inexact, one_program
from minijax.numpy.selection import where
from minijax.random import continuous
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array

__all__ = ["Rotation", "Slerp"]


def _parts(x: Array) -> list[Array]:
    """The components along the last dimension."""
    return [x[..., i] for i in range(aval_of(x).shape[-1])]


def _together(*components: Any) -> Array:
    """Components as the last dimension of one array."""
    return joining.stack(components, axis=-1)


def _length(*components: Any) -> tuple[Array, Array]:
    """The length of vectors, and where it is so small that its square is of no account.

    There the length is that of another vector, so that it has a derivative.
    """
    squared: Any = 0.0
    for x in components:
        squared = square(x) + squared
    small = squared < epsilon(components[0]) * 1e-2
    return sqrt(where(small, 1.0, squared)), small


@one_program()
def _normalized(quat: Array) -> Array:
    """Quaternions of length 1."""
    squared = reductions.sum(square(quat), axis=-1, keepdims=True)
    return quat / sqrt(squared)


@one_program()
def _product(p: Array, q: Array) -> Array:
    """The rotation by `q`, then by `p`."""
    px, py, pz, pw = _parts(p)
    qx, qy, qz, qw = _parts(q)
    m, a, s = elementary.multiply, elementary.add, elementary.subtract
    return _together(
        s(a(a(m(pw, qx), m(qw, px)), m(py, qz)), m(pz, qy)),
        s(a(a(m(pw, qy), m(qw, py)), m(pz, qx)), m(px, qz)),
        s(a(a(m(pw, qz), m(qw, pz)), m(px, qy)), m(py, qx)),
        s(s(s(m(pw, qw), m(px, qx)), m(py, qy)), m(pz, qz)),
    )


@one_program()
def _canonical(quat: Array) -> Array:
    """Of the two quaternions of each rotation, the one with w >= 0."""
    return where(quat[..., 3:] < 0.0, -quat, quat)


@one_program()
def _matrix_from_quat(quat: Array) -> Array:
    """Rotation matrices."""
    x, y, z, w = _parts(quat)
    xx, yy, zz, ww = square(x), square(y), square(z), square(w)

    def twice(a: Array, b: Array, c: Array, d: Array, sign: float) -> Array:
        return (a * b + c * d * sign) * 2.0

    rows = [
        (xx - yy + ww - zz, twice(x, y, z, w, -1), twice(x, z, y, w, 1)),
        (twice(x, y, z, w, 1), yy - xx + ww - zz, twice(y, z, x, w, -1)),
        (twice(x, z, y, w, -1), twice(y, z, x, w, 1), zz - xx - yy + ww),
    ]
    return joining.stack([_together(*row) for row in rows], axis=-2)


@one_program()
def _quat_from_matrix(matrix: Array) -> Array:
    """Quaternions of rotation matrices, from the largest of four candidates.

    Shepperd, Journal of Guidance and Control 1 (1978), 223.
    """
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row: list[Any] = [None] * 4
        row[i] = 1.0 - trace + m[i][i] * 2.0
        row[j] = m[j][i] + m[i][j]
        row[k] = m[k][i] + m[i][k]
        row[3] = m[k][j] - m[j][k]
        candidates.append(_together(*row))
    differences = m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]
    (candidates.append(_together(*differences, trace + 1.0)))
    sizes = _together(m[0][0], m[1][1], m[2][2], trace)
    place = reductions.argmax(sizes, axis=-1, keepdims=True)
    chosen = candidates[0]
    for i in (1, 2, 3):
        chosen = where(place == i, candidates[i], chosen)
    return _normalized(chosen)


@one_program()
def _quat_from_rotvec(rotvec: Array) -> Array:
    """Quaternions of rotation vectors: axes, as long as the angles are."""
    x, y, z = _parts(rotvec)
    squared = square(x) + square(y) + square(z)
    angle, small = _length(x, y, z)
    # sin(a/2) / a and cos(a/2), and their series about 0.
    half = angle * 0.5
    scale = where(small, 0.5 - squared * (1 / 48), sin(half) / angle)
    w = where(small, 1.0 - squared * (1 / 8), cos(half))
    return _together(x * scale, y * scale, z * scale, w)


@one_program()
def _rotvec_from_quat(quat: Array) -> Array:
    """Rotation vectors, of angles up to π."""
    x, y, z, w = _parts(_canonical(quat))
    size, small = _length(x, y, z)
    squared = square(x) + square(y) + square(z)
    angle = atan2(size, w) * 2.0
    scale = where(small, 2.0 + squared * (1 / 3), angle / size)
    return _together(x * scale, y * scale, z * scale)


@one_program()
def _magnitude_from_quat(quat: Array) -> Array:
    """The angles of rotations, from 0 to π."""
    x, y, z, w = _parts(quat)
    size = sqrt(square(x) + square(y) + square(z))
    return atan2(size, abs(w)) * 2.0


@one_program()
def _mrp_from_quat(quat: Array) -> Array:
    """Modified Rodrigues parameters: axes, as long as the tangent of a quarter of the angle."""
    quat = _canonical(quat)
    return quat[..., :3] / (quat[..., 3:] + 1.0)


@one_program()
def _quat_from_mrp(mrp: Array) -> Array:
    """Quaternions of modified Rodrigues parameters."""
    squared = reductions.sum(square(mrp), axis=-1, keepdims=True)
    whole = joining.concatenate([mrp * 2.0, 1.0 - squared], axis=-1)
    return whole / (squared + 1.0)


@one_program(static=("axes", "intrinsic"))
def _quat_from_euler(angles: Array, axes: tuple[int, ...], intrinsic: bool) -> Array:
    """The product of rotations about axes, by angles along the last dimension."""
    total: Any = None
    for i, axis in enumerate(axes):
        half = angles[..., i] * 0.5
        row: list[Any] = [half * 0.0] * 4
        row[axis], row[3] = sin(half), cos(half)
        turn = _together(*row)
        if total is None:
            total = turn
        else:
            total = _product(total, turn) if intrinsic else _product(turn, total)
    return total


@one_program(static=("axes", "intrinsic"))
def _euler_from_quat(quat: Array, axes: tuple[int, int, int], intrinsic: bool) -> Array:
    """Euler angles, the third of which is 0 where two axes fall together.

    Bernardes and Viollet, PLoS ONE 17 (2022), e0276302.
    """
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = float((i - j) * (j - k) * (k - i) // 2)
    q = _parts(quat)
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
    else:
        a, b = q[3] - q[j], q[i] + q[k] * sign
        c, d = q[j] + q[3], q[k] * sign - q[i]
    middle = atan2(_hypot(c, d), _hypot(a, b)) * 2.0
    half_sum, half_difference = atan2(b, a), atan2(d, c)
    margin = 4 * epsilon(quat)
    at_zero = abs(middle) <= margin
    at_pi = abs(middle - math.pi) <= margin
    first, third = half_sum - half_difference, half_sum + half_difference
    if intrinsic:
        first, third = third, first
    turn = half_difference * (2.0 if intrinsic else -2.0)
    alone = where(at_zero, half_sum * 2.0, turn)
    degenerate = at_zero | at_pi
    first = where(degenerate, alone, first)
    third = where(degenerate, 0.0, third)
    if not symmetric:
        if intrinsic:
            first = first * sign
        else:
            third = third * sign
        middle = middle - math.pi / 2
    return _together(_wrapped(first), middle, _wrapped(third))


def _hypot(x: Array, y: Array) -> Array:
    size, small = _length(x, y)
    return where(small, 0.0, size)


def _wrapped(angle: Array) -> Array:
    """An angle from -π to π."""
    turned = where(angle > math.pi, angle - 2 * math.pi, angle)
    return where(angle < -math.pi, angle + 2 * math.pi, turned)


@one_program(static=("inverse",))
def _applied(quat: Array, vectors: Array, inverse: bool) -> Array:
    """Vectors turned by rotations."""
    matrix = _matrix_from_quat(quat)
    if inverse:
        matrix = shaping.swapaxes(matrix, -1, -2)
    return einsum("...ij,...j->...i", matrix, vectors)


_AXES = {"x": 0, "y": 1, "z": 2}


class Rotation(NamedTuple):
    """Rotations in three dimensions, one or several, as unit quaternions (x, y, z, w).

    Shapes: quat: T[4] for one rotation, T[n, 4] for several.
    Dtypes: floating.
    Source: mirrors jax.scipy.spatial.transform.Rotation (0.10).

    Example:
        >>> turn = minijax.scipy.spatial.transform.Rotation.from_rotvec(jnp.array([0, 0, jnp.pi]))
        >>> jnp.allclose(turn.apply(jnp.array([1.0, 0.0, 0.0])), jnp.array([-1, 0, 0]), atol=1e-6)
        Array(True, dtype=bool)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Any]) -> Rotation:
        """Concatenates the rotations of all arguments, in their order."""
        return cls(joining.concatenate([shaping.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations from Euler angles: by angles about axes, one after another.

        Args:
            seq: up to three axes: of "xyz" for axes that stay, of "XYZ" for those that turn along.
            angles: T[k] or T[n, k] for k axes; T[] for a single one.
            degrees: whether angles are in degrees.
        """
        axes, intrinsic = _axes(seq, "from_euler")
        angles = shaping.atleast_1d(_floats("from_euler", angles))
        if aval_of(angles).shape[-1] != len(axes):
            problem = "there is not one angle for each axis."
            got = {"seq": repr(seq), "angles": aval_of(angles)}
            _refuse("Rotation.from_euler", problem, f"angles of shape (..., {len(axes)})", **got)
        if degrees:
            angles = elementary.deg2rad(angles)
        return cls(_quat_from_euler(angles, axes, intrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Rotations from rotation matrices: T[3, 3] or T[n, 3, 3]."""
        return cls(_quat_from_matrix(_sized("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Rotations from modified Rodrigues parameters: T[3] or T[n, 3]."""
        return cls(_quat_from_mrp(_sized("from_mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Rotations from quaternions of any norm but 0: T[4] or T[n, 4]."""
        return cls(_normalized(_sized("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations from vectors along the axes, as long as the angles: T[3] or T[n, 3]."""
        rotvec = _sized("from_rotvec", rotvec, 3)
        return cls(_quat_from_rotvec(elementary.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The identity rotation, or `num` of them."""
        quat = creation.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else shaping.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A uniformly distributed random rotation, or `num` of them."""
        shape = (4,) if num is None else (num, 4)
        return cls(_normalized(continuous.normal(random_key, shape)))

    def __getitem__(self, indexer: Any) -> Rotation:
        """The rotations at places."""
        if self.single:
            problem = "one rotation has no places."
            raise TypeError(_text("Rotation", problem, quat=aval_of(self.quat)))
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """How many rotations there are."""
        if self.single:
            problem = "one rotation has no length."
            raise TypeError(_text("Rotation", problem, quat=aval_of(self.quat)))
        return int(aval_of(self.quat).shape[0])

    def __mul__(self, other: object) -> Rotation:
        """The rotation by `other`, then by this one."""
        if not isinstance(other, Rotation):
            raise TypeError(_text("Rotation", "only rotations are multiplied.", other=repr(other)))
        return Rotation(_product(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotates vectors: T[3] or T[n, 3]; one rotation turns all, several turn one each."""
        vectors = _sized("apply", vectors, 3)
        counts = {s[0] for s in (vectors.shape[:-1], self.quat.shape[:-1]) if s and s[0] != 1}
        if len(counts) > 1:
            problem = "there is not one vector for each rotation."
            got = {"vectors": aval_of(vectors), "quat": aval_of(self.quat)}
            _refuse("Rotation.apply", problem, "as many vectors as rotations, or one", **got)
        return _applied(self.quat, vectors, bool(inverse))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Euler angles about three axes; see `from_euler`.

        Where the first and the third axis fall together, the third angle is 0.
        """
        axes, intrinsic = _axes(seq, "as_euler")
        if len(axes) != 3:
            _refuse("Rotation.as_euler", "three axes are needed.", "such as 'xyz'", seq=repr(seq))
        angles = _euler_from_quat(self.quat, axes, intrinsic)
        return elementary.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Rotation matrices: T[3, 3] or T[n, 3, 3]."""
        return _matrix_from_quat(self.quat)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters: T[3] or T[n, 3]."""
        return _mrp_from_quat(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Rotation vectors, along the axes and as long as the angles: T[3] or T[n, 3]."""
        rotvec = _rotvec_from_quat(self.quat)
        return elementary.rad2deg(rotvec) if degrees else rotvec

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions: T[4] or T[n, 4].

        Args:
            canonical: whether to take those with w >= 0.
            scalar_first: whether to order them (w, x, y, z).
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return shaping.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The inverse rotations."""
        signs = np.array([-1, -1, -1, 1]).astype(aval_of(self.quat).dtype)
        return Rotation(self.quat * signs)

    def magnitude(self) -> Array:
        """The rotation angles, from 0 to π: T[] or T[n]."""
        return _magnitude_from_quat(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean rotation, from which the sum of squared distances is least.

        Markley et al., Journal of Guidance, Control, and Dynamics 30 (2007), 1193.
        """
        count = len(self)
        if weights is None:
            weights = creation.ones(count, aval_of(self.quat).dtype)
        elif aval_of(weights).shape != (count,):
            problem = "there is not one weight for each rotation."
            expected = f"weights of shape ({count},)"
            _refuse("Rotation.mean", problem, expected, weights=aval_of(weights))
        moments = einsum("n,ni,nj->ij", weights, self.quat, self.quat)
        vectors, _ = linalg.eigh(moments)
        return Rotation.from_quat(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is a single rotation, without a batch dimension."""
        return bool(aval_of(self.quat).ndim == 1)


class Slerp(NamedTuple):
    """Spherical linear interpolation of rotations.

    Make it by `Slerp.init(times, rotations)` and call it with times; before the first and after the
    last, the rotations there stay.
    Source: mirrors jax.scipy.spatial.transform.Slerp (0.10).

    Example:
        >>> Rotation = minijax.scipy.spatial.transform.Rotation
        >>> turns = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
        >>> between = minijax.scipy.spatial.transform.Slerp.init(jnp.array([0.0, 1.0]), turns)
        >>> between(jnp.array(0.5)).as_rotvec().round(3)
        Array([1., 0., 0.], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Interpolation between `rotations` at ascending `times`.

        Raises:
            ValueError: there are fewer than two rotations, or not one time for each.
        """
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            _refuse("Slerp.init", "there are fewer than two rotations.", "several rotations")
        times = creation.asarray(times, dtype=aval_of(rotations.quat).dtype)
        if aval_of(times).shape != (len(rotations),):
            problem = "there is not one time for each rotation."
            expected = f"times of shape ({len(rotations)},)"
            _refuse("Slerp.init", problem, expected, times=aval_of(times))
        start, end = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        delta = times[1:] - times[:-1]
        return cls(times, delta, start, (start.inv() * end).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at times: T[] or T[n]."""
        times = creation.asarray(times, dtype=aval_of(self.times).dtype)
        if aval_of(times).ndim > 1:
            problem = "times are of several dimensions."
            _refuse("Slerp", problem, "shape () or (n,)", times=aval_of(times))
        last = aval_of(self.timedelta).shape[0] - 1
        place = searchsorted(self.times, times, side="right") - 1
        place = elementary.clip(place, 0, last)
        passed = (times - self.times[place]) / self.timedelta[place]
        share = shaping.expand_dims(elementary.clip(passed, 0.0, 1.0), -1)
        turn = Rotation.from_rotvec(self.rotvecs[place] * share)
        return Rotation(self.rotations.quat[place]) * turn


def _text(name: str, problem: str, expected: str | None = None, **got: Any) -> str:
    return message(f"scipy.spatial.transform.{name}", problem, got=got, expected=expected)


def _refuse(name: str, problem: str, expected: str, **got: Any) -> None:
    raise ValueError(_text(name, problem, expected, **got))


def _floats(name: str, x: ArrayLike) -> Array:
    return inexact(f"scipy.spatial.transform.Rotation.{name}", creation.asarray(x))


def _sized(name: str, x: ArrayLike, *sizes: int) -> Array:
    """An array of floats whose last dimensions have the given sizes."""
    x = _floats(name, x)
    shape = aval_of(x).shape
    if shape[-len(sizes) :] != sizes:
        text = ", ".join(map(str, sizes))
        _refuse(f"Rotation.{name}", "the shape does not fit.", f"shape (..., {text})", x=aval_of(x))
    return x


def _axes(seq: str, name: str) -> tuple[Any, bool]:
    """The axes that a string names, and whether they turn along."""
    if not re.fullmatch(r"[xyz]{1,3}|[XYZ]{1,3}", seq):
        problem, expected = "the axes are not understood.", "one to three of 'xyz', or of 'XYZ'"
        _refuse(f"Rotation.{name}", problem, expected, seq=repr(seq))
    axes = tuple(_AXES[c] for c in seq.lower())
    if any(a == b for a, b in itertools.pairwise(axes)):
        _refuse(f"Rotation.{name}", "an axis follows itself.", "such as 'xyx'", seq=repr(seq))
    return axes, seq.isupper()


__dir__ = source.shown(globals())
