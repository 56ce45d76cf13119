"""Rotations against those of SciPy."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial import transform as theirs

import minijax as jax
from minijax.scipy.spatial.transform import Rotation, Slerp

pytestmark = pytest.mark.feature("NP-01")

QUATS = np.random.default_rng(0).normal(size=(6, 4))
SEQUENCES = ("xyz", "zyx", "zxz", "yxy", "XYZ", "YZX", "ZXZ", "XZX")


@pytest.fixture(autouse=True)
def in_double_precision() -> Any:
    with jax.enable_x64(True):
        yield


def both() -> tuple[Rotation, theirs.Rotation]:
    return Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)


def same(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_representations_equal_those_of_scipy():
    ours, scipy = both()
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        same(getattr(ours, name)(), getattr(scipy, name)())
        same(getattr(ours[1], name)(), getattr(scipy[1], name)())
    same(ours.as_rotvec(degrees=True), scipy.as_rotvec(degrees=True))
    same(ours.as_quat(canonical=True), scipy.as_quat(canonical=True))
    same(ours.as_quat(scalar_first=True), scipy.as_quat(scalar_first=True))
    for name in ("matrix", "rotvec", "mrp"):
        again = getattr(Rotation, f"from_{name}")(getattr(ours, f"as_{name}")())
        same(again.as_quat(canonical=True), scipy.as_quat(canonical=True))


def test_euler_angles_equal_those_of_scipy():
    ours, scipy = both()

    @jax.jit
    def all_of_them(ours: Any) -> Any:
        angles = {s: ours.as_euler(s, degrees=True) for s in SEQUENCES}
        return angles, {s: Rotation.from_euler(s, a, degrees=True) for s, a in angles.items()}

    angles, again = all_of_them(ours)
    for sequence in SEQUENCES:
        same(angles[sequence], scipy.as_euler(sequence, degrees=True))
        same(again[sequence].as_matrix(), scipy.as_matrix())
    same(Rotation.from_euler("x", 0.3).as_rotvec(), [0.3, 0, 0])
    same(
        Rotation.from_euler("xy", [[0.1, 0.2]]).quat,
        theirs.Rotation.from_euler("xy", [[0.1, 0.2]]).as_quat(),
    )
    for sequence in ("xyz", "XYZ", "zxz", "ZXZ"):
        stuck = [0.3, np.pi / 2 if sequence[0] != sequence[2] else 0, 0.4]
        ours = Rotation.from_euler(sequence, stuck)
        angles = ours.as_euler(sequence)
        assert angles[2] == 0
        same(Rotation.from_euler(sequence, angles).as_matrix(), ours.as_matrix())


def test_products_and_means_equal_those_of_scipy():
    ours, scipy = both()
    same((ours * ours[2]).as_matrix(), (scipy * scipy[2]).as_matrix())
    same((ours[2] * ours.inv()).as_matrix(), (scipy[2] * scipy.inv()).as_matrix())
    weights = np.arange(1.0, 7)
    same(ours.mean(weights).as_matrix(), scipy.mean(weights).as_matrix())
    same(ours.mean().as_matrix(), scipy.mean().as_matrix())
    both_twice = Rotation.concatenate([ours, ours[0]])
    same(both_twice.quat, np.concatenate([ours.quat, ours.quat[:1]]))


def test_vectors_turn_as_those_of_scipy():
    ours, scipy = both()
    vectors = np.random.default_rng(1).normal(size=(6, 3))
    same(ours.apply(vectors), scipy.apply(vectors))
    same(ours.apply(vectors, inverse=True), scipy.apply(vectors, inverse=True))
    same(ours.apply(vectors[0]), scipy.apply(vectors[0]))
    same(ours[0].apply(vectors), scipy[0].apply(vectors))
    same(ours[0].apply(vectors[0]), scipy[0].apply(vectors[0]))


def test_rotations_between_equal_those_of_scipy():
    ours, scipy = both()
    times = np.array([0.0, 1, 3, 4, 4.5, 6])
    between, expected = Slerp.init(times, ours), theirs.Slerp(times, scipy)
    moments = np.array([0, 0.5, 2.9, 3, 4.2, 6])
    same(between(moments).as_matrix(), expected(moments).as_matrix())
    same(jax.jit(lambda s, t: s(t))(between, 0.7).as_matrix(), expected(0.7).as_matrix())
    ends = between(np.array([-1.0, 9])).as_matrix()
    same(ends, scipy[[0, -1]].as_matrix())


def test_derivatives_exist_at_the_identity():
    zero = np.zeros(3)
    same(jax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(zero), np.eye(3))
    turned = jax.jacobian(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 0, 0])))(zero)
    same(turned, [[0, 0, 0], [0, 0, 1], [0, -1, 0]])
    small = np.array([1e-9, 2e-9, 0])
    same(Rotation.from_rotvec(small).as_rotvec() / 1e-9, small / 1e-9)


def test_rotations_are_counted_and_chosen():
    ours, _ = both()
    assert (len(ours), ours.single, ours[0].single) == (6, False, True)
    same(ours[1:3].quat, ours.quat[1:3])
    assert Rotation.identity().quat.tolist() == [0, 0, 0, 1]
    assert Rotation.identity(2).quat.shape == (2, 4)
    random = Rotation.random(jax.random.key(0), 500)
    same(np.linalg.norm(random.quat, axis=1), np.ones(500))
    assert np.abs(random.as_matrix().mean(0)).max() < 0.1
    assert Rotation.random(jax.random.key(0)).single


ONE = Rotation(np.array([0.0, 0, 0, 1]))
TWO = Rotation(np.array([[0.0, 0, 0, 1]] * 2))
MESSAGES = [
    (lambda: len(ONE), TypeError, "one rotation has no length"),
    (lambda: ONE[0], TypeError, "one rotation has no places"),
    (lambda: ONE * 2, TypeError, "only rotations are multiplied"),
    (lambda: ONE.as_euler("xy"), ValueError, "three axes are needed"),
    (lambda: ONE.as_euler("xYz"), ValueError, "the axes are not understood"),
    (lambda: Rotation.from_euler("xxy", np.ones(3)), ValueError, "an axis follows itself"),
    (lambda: Rotation.from_euler("xyz", np.ones(2)), ValueError, "one angle for each axis"),
    (lambda: Rotation.from_matrix(np.eye(2)), ValueError, "shape (..., 3, 3)"),
    (lambda: TWO.apply(np.ones((3, 3))), ValueError, "one vector for each rotation"),
    (lambda: TWO.mean(np.ones(3)), ValueError, "one weight for each rotation"),
    (lambda: Slerp.init(np.ones(1), ONE), ValueError, "fewer than two rotations"),
    (lambda: Slerp.init(np.ones(3), TWO), ValueError, "one time for each rotation"),
    (lambda: Slerp.init(np.arange(2.0), TWO)(np.ones((1, 1))), ValueError, "several dimensions"),
]


@pytest.mark.parametrize(("call", "error", "text"), MESSAGES, ids=[t for _, _, t in MESSAGES])
def test_error_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
