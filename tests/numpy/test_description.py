"""What arrays are asked about themselves, how they are printed, and how they are kept in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minijax.numpy as jnp

THINGS = [2.5, True, 1j, np.float32(1), np.ones(2), jnp.float32(1), jnp.ones((2, 3)), jnp.array(1j)]


@pytest.mark.feature("NP-01")
def test_questions_are_answered_as_by_numpy() -> None:
    for name in ("ndim", "shape", "size", "isrealobj", "iscomplexobj"):
        answers = [getattr(jnp, name)(x) for x in THINGS]
        assert answers == [getattr(np, name)(np.asarray(x)) for x in THINGS]
    # Arrays of rank 0 are scalars, those of NumPy are not.
    assert [jnp.isscalar(x) for x in THINGS] == [True] * 4 + [False, True, False, True]
    assert [jnp.iterable(x) for x in THINGS] == [np.ndim(x) > 0 for x in THINGS]
    assert jnp.size(jnp.ones((2, 3)), 1) == 3


def test_printing_options_are_those_of_numpy() -> None:
    third = jnp.float32([1 / 3])
    assert jnp.array_str(third, precision=2) == "[0.33]"
    assert jnp.array_repr(jnp.arange(3)) == "array([0, 1, 2], dtype=int32)"
    with jnp.printoptions(precision=2):
        assert str(third) == "[0.33]"
    before = jnp.get_printoptions()
    jnp.set_printoptions(precision=3)
    changed = np.get_printoptions()["precision"], str(third)
    jnp.set_printoptions(**before)
    assert changed == (3, "[0.333]")


def test_arrays_of_all_dtypes_come_back_from_files(tmp_path: Path) -> None:
    for dtype in ("int8", "bfloat16", "complex64"):
        x = jnp.arange(3).astype(dtype)
        jnp.save(tmp_path / "x.npy", x)
        found = jnp.load(tmp_path / "x.npy")
        assert (found.dtype, found.tolist()) == (x.dtype, x.tolist())
    jnp.savez(tmp_path / "several.npz", a=jnp.arange(2), b=jnp.ones(1))
    assert jnp.load(tmp_path / "several.npz")["a"].tolist() == [0, 1]


def test_reading_from_outside_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"fix +minijax.numpy.asarray"):
        jnp.fromfile("file")
