"""Rotations in three dimensions, and interpolation between them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import linalg
from minijax.numpy import (
    arithmetic,
    contraction,
    creation,
    elementary,
    joining,
    ordering,
    promotion,
    shaping,
)
from minijax.random import distributions
from minijax.scipy.spatial import quaternions

__all__ = ["Rotation", "Slerp"]

_AXES = {"x": 0, "y": 1, "z": 2}


class Rotation(NamedTuple):
    """One rotation or several in three dimensions, as unit quaternions (x, y, z, w).

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
        """Several rotations, those of all arguments one after another."""
        return cls(joining.concatenate([shaping.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations by angles about axes, one after another.

        Args:
            seq: up to three axes: of "xyz" for axes that stay, of "XYZ" for those that turn along.
            angles: T[k] or T[n, k] for k axes; T[] for a single one.
            degrees: whether angles are in degrees.
        """
        axes, intrinsic = _axes(seq, "from_euler")
        angles = shaping.atleast_1d(_floats("from_euler", angles))
        if aval_of(angles).shape[-1] != len(axes):
            _refuse(
                "Rotation.from_euler",
                "there is not one angle for each axis.",
                f"angles of shape (..., {len(axes)})",
                seq=repr(seq),
                angles=aval_of(angles),
            )
        if degrees:
            angles = elementary.deg2rad(angles)
        return cls(quaternions.quat_from_euler(angles, axes, intrinsic))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Rotations of matrices: T[3, 3] or T[n, 3, 3]."""
        return cls(quaternions.quat_from_matrix(_sized("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Rotations of modified Rodrigues parameters: T[3] or T[n, 3]."""
        return cls(quaternions.quat_from_mrp(_sized("from_mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Rotations of quaternions of any length but 0: T[4] or T[n, 4]."""
        return cls(quaternions.normalized(_sized("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Rotations of vectors along their axes, as long as the angles: T[3] or T[n, 3]."""
        rotvec = _sized("from_rotvec", rotvec, 3)
        return cls(quaternions.quat_from_rotvec(elementary.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that changes nothing, or `num` of them."""
        quat = creation.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else shaping.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, of which all are equally likely."""
        shape = (4,) if num is None else (num, 4)
        return cls(quaternions.normalized(distributions.normal(random_key, shape)))

    def __getitem__(self, indexer: Any) -> Rotation:
        """The rotations at places."""
        if self.single:
            raise TypeError(
                _text("Rotation", "one rotation has no places.", quat=aval_of(self.quat))
            )
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """How many rotations there are."""
        if self.single:
            raise TypeError(
                _text("Rotation", "one rotation has no length.", quat=aval_of(self.quat))
            )
        return int(aval_of(self.quat).shape[0])

    def __mul__(self, other: Any) -> Rotation:
        """The rotation by `other`, then by this one."""
        if not isinstance(other, Rotation):
            raise TypeError(_text("Rotation", "only rotations are multiplied.", other=repr(other)))
        return Rotation(quaternions.product(self.quat, other.quat))

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors turned: T[3] or T[n, 3]; one rotation turns all, several turn one each."""
        vectors = _sized("apply", vectors, 3)
        counts = {s[0] for s in (vectors.shape[:-1], self.quat.shape[:-1]) if s and s[0] != 1}
        if len(counts) > 1:
            _refuse(
                "Rotation.apply",
                "there is not one vector for each rotation.",
                "as many vectors as rotations, or one",
                vectors=aval_of(vectors),
                quat=aval_of(self.quat),
            )
        return quaternions.applied(self.quat, vectors, bool(inverse))

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Angles about three axes; see `from_euler`.

        Where the first and the third axis fall together, the third angle is 0.
        """
        axes, intrinsic = _axes(seq, "as_euler")
        if len(axes) != 3:
            _refuse("Rotation.as_euler", "three axes are needed.", "such as 'xyz'", seq=repr(seq))
        angles = quaternions.euler_from_quat(self.quat, axes, intrinsic)
        return elementary.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Any:
        """Matrices: T[3, 3] or T[n, 3, 3]."""
        return quaternions.matrix_from_quat(self.quat)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters: T[3] or T[n, 3]."""
        return quaternions.mrp_from_quat(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along axes, as long as the angles: T[3] or T[n, 3]."""
        rotvec = quaternions.rotvec_from_quat(self.quat)
        return elementary.rad2deg(rotvec) if degrees else rotvec

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Quaternions: T[4] or T[n, 4].

        Args:
            canonical: whether to take those with w >= 0.
            scalar_first: whether to order them (w, x, y, z).
        """
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return shaping.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The rotations back."""
        signs = np.array([-1, -1, -1, 1]).astype(aval_of(self.quat).dtype)
        return Rotation(arithmetic.multiply(self.quat, signs))

    def magnitude(self) -> Any:
        """The angles, from 0 to π: T[] or T[n]."""
        return quaternions.magnitude_from_quat(self.quat)

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation from which the squares of distances are least.

        Markley et al., Journal of Guidance, Control, and Dynamics 30 (2007), 1193.
        """
        count = len(self)
        if weights is None:
            weights = creation.ones(count, aval_of(self.quat).dtype)
        elif aval_of(weights).shape != (count,):
            _refuse(
                "Rotation.mean",
                "there is not one weight for each rotation.",
                f"weights of shape ({count},)",
                weights=aval_of(weights),
            )
        moments = contraction.einsum("n,ni,nj->ij", weights, self.quat, self.quat)
        vectors, _ = linalg.eigh(moments)
        return Rotation.from_quat(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, with no dimension of several."""
        return bool(aval_of(self.quat).ndim == 1)


class Slerp(NamedTuple):
    """Rotations between given ones, at constant speed from each to the next.

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
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Interpolation between `rotations` at ascending `times`.

        Raises:
            ValueError: there are fewer than two rotations, or not one time for each.
        """
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            _refuse("Slerp.init", "there are fewer than two rotations.", "several rotations")
        times = creation.asarray(times, dtype=aval_of(rotations.quat).dtype)
        if aval_of(times).shape != (len(rotations),):
            _refuse(
                "Slerp.init",
                "there is not one time for each rotation.",
                f"times of shape ({len(rotations)},)",
                times=aval_of(times),
            )
        start, end = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        delta = arithmetic.subtract(times[1:], times[:-1])
        return cls(times, delta, start, (start.inv() * end).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times: T[] or T[n]."""
        times = creation.asarray(times, dtype=aval_of(self.times).dtype)
        if aval_of(times).ndim > 1:
            _refuse(
                "Slerp",
                "times are of several dimensions.",
                "shape () or (n,)",
                times=aval_of(times),
            )
        last = aval_of(self.timedelta).shape[0] - 1
        place = arithmetic.subtract(ordering.searchsorted(self.times, times, side="right"), 1)
        place = arithmetic.clip(place, 0, last)
        passed = arithmetic.divide(
            arithmetic.subtract(times, self.times[place]), self.timedelta[place]
        )
        share = shaping.expand_dims(arithmetic.clip(passed, 0.0, 1.0), -1)
        turn = Rotation.from_rotvec(arithmetic.multiply(self.rotvecs[place], share))
        return Rotation(self.rotations.quat[place]) * turn


def _text(name: str, problem: str, expected: str | None = None, **got: Any) -> str:
    return message(f"scipy.spatial.transform.{name}", problem, got=got, expected=expected)


def _refuse(name: str, problem: str, expected: str, **got: Any) -> None:
    raise ValueError(_text(name, problem, expected, **got))


def _floats(name: str, x: Any) -> Any:
    return promotion.inexact(f"scipy.spatial.transform.Rotation.{name}", creation.asarray(x))


def _sized(name: str, x: Any, *sizes: int) -> Any:
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
        _refuse(
            f"Rotation.{name}",
            "the axes are not understood.",
            "one to three of 'xyz', or of 'XYZ'",
            seq=repr(seq),
        )
    axes = tuple(_AXES[c] for c in seq.lower())
    if any(a == b for a, b in itertools.pairwise(axes)):
        _refuse(f"Rotation.{name}", "an axis follows itself.", "such as 'xyx'", seq=repr(seq))
    return axes, seq.isupper()


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
