"""Laws that hold of every primitive, checked on the samples of its records.

The derivatives of a record are computed by one program, its batched calls by another, since
compilation is what these tests spend their time on.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.lax
from minijax.core import dtypes, tree
from minijax.core.check import check_jaxpr
from minijax.core.config import enable_x64
from minijax.core.primitive import PRIMITIVES
from minijax.lax.elementwise import Elementwise
from tests.lax.records import Record

_HERE = Path(__file__).parent
_MODULES = [importlib.import_module(f"tests.lax.{p.stem}") for p in _HERE.glob("records_*.py")]
RECORDS: list[Record] = [record for module in _MODULES for record in module.RECORDS]

_STEP = 1e-6
_BATCH = 3


def by_record(records: list[Record]) -> Any:
    """Runs a test once for each record."""
    return pytest.mark.parametrize("record", records, ids=lambda record: record.id)


_DIFFERENTIABLE = [r for r in RECORDS if r.grad]
_BATCHABLE = [r for r in RECORDS if r.batch]


def leaves(x: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a tree as NumPy arrays that NumPy can compare."""
    return [_comparable(np.asarray(leaf)) for leaf in tree.leaves(x)]


def _comparable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if dtypes.issubdtype(x.dtype, np.floating):
        return x.astype(np.float64)
    if dtypes.issubdtype(x.dtype, np.integer):
        return x.astype(np.uint64 if x.dtype == np.uint64 else np.int64)
    return x


def assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    """Compares trees of arrays: shapes, where they are NaN or infinite, and values."""
    actual, expected = leaves(actual), leaves(expected)
    assert [x.shape for x in actual] == [x.shape for x in expected]
    for a, e in zip(actual, expected, strict=True):
        if a.dtype == np.bool_ or a.dtype.kind in "iu":
            np.testing.assert_array_equal(a, e)
        else:
            scale = max(1.0, float(np.max(np.abs(e[np.isfinite(e)]), initial=0.0)))
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * scale)


def wide_if(dtype: str) -> Any:
    """The x64 mode that `dtype` needs."""
    return enable_x64(dtype in ("float64", "complex128", "int64", "uint64"))


@pytest.mark.feature("NP-01", "CR-13")
@pytest.mark.parametrize(
    ("record", "dtype"),
    [pytest.param(r, dtype, id=f"{r.id}-{dtype}") for r in RECORDS for dtype in r.dtypes],
)
def test_call_matches_the_oracle(record: Record, dtype: str) -> None:
    args = record.make_args(dtype)
    with wide_if(dtype), np.errstate(all="ignore"):
        assert_close(record.call(*args), record.oracle(*args), record.tolerance_for(dtype))


@pytest.mark.feature("CR-01")
@by_record(RECORDS)
def test_compiled_call_matches_the_eager_one(record: Record) -> None:
    args = record.make_args(record.dtypes[0])
    with wide_if(record.dtypes[0]):
        expected = record.call(*args)
        assert_close(
            minijax.jit(record.call)(*args), expected, record.tolerance_for(record.dtypes[0])
        )


@by_record(RECORDS)
def test_jaxpr_is_well_typed_and_computes_the_call(record: Record) -> None:
    args = record.make_args(record.dtypes[0])
    with wide_if(record.dtypes[0]):
        closed = minijax.make_jaxpr(record.call)(*args)
        check_jaxpr(closed)
        actual = minijax.eval_jaxpr(closed.jaxpr, closed.consts, *args)
        expected = tree.leaves(record.call(*args))
        assert [x.dtype for x in closed.out_avals] == [x.dtype for x in expected]
        assert_close(actual, expected, record.tolerance_for(record.dtypes[0]))


@functools.cache
def derivatives(record: Record) -> dict[str, Any]:
    """Derivatives of a record in 64 bits: by each transformation, and by finite differences."""
    record = record.widened()
    rng = np.random.default_rng(0)

    def random_like(x: Any) -> Any:
        noise = rng.standard_normal(x.shape)
        if dtypes.issubdtype(x.dtype, np.complexfloating):
            noise = noise + 1j * rng.standard_normal(x.shape)
        return noise.astype(x.dtype)

    with enable_x64(True):
        args = record.make_args(record.dtypes[0])
        primals = tuple(args[i] for i in record.grad)

        def function(*primals: Any) -> list[Any]:
            full = list(args)
            for i, x in zip(record.grad, primals, strict=True):
                full[i] = x
            outs = tree.leaves(record.call(*full))
            return [x for x in outs if dtypes.issubdtype(x.dtype, np.inexact)]

        tangents = tuple(map(random_like, primals))
        ahead = tuple(x + _STEP * v for x, v in zip(primals, tangents, strict=True))
        behind = tuple(x - _STEP * v for x, v in zip(primals, tangents, strict=True))
        cts = list(map(random_like, minijax.eval_shape(function, *primals)))

        def gradient(*primals: Any) -> Any:
            return minijax.vjp(function, *primals)[1](cts)

        def compute(primals: Any, ahead: Any, behind: Any) -> dict[str, Any]:
            found = {
                "jvp": minijax.jvp(function, primals, tangents)[1],
                "ahead": function(*ahead),
                "behind": function(*behind),
                "vjp": gradient(*primals),
            }
            if record.order == 1:
                return found
            return found | {
                "second": minijax.jvp(gradient, primals, tangents)[1],
                "vjp ahead": gradient(*ahead),
                "vjp behind": gradient(*behind),
            }

        results = minijax.jit(compute)(primals, ahead, behind)
        found = {name: [np.asarray(x) for x in tree.leaves(v)] for name, v in results.items()}
    return found | {"tangents": tangents, "cotangents": cts}


def _differences(ahead: Any, behind: Any) -> list[Any]:
    return [(a - b) / (2 * _STEP) for a, b in zip(ahead, behind, strict=True)]


def _pairing(xs: Any, ys: Any) -> float:
    return float(sum(np.sum(np.real(x * y)) for x, y in zip(xs, ys, strict=True)))


@pytest.mark.feature("AD-01")
@by_record(_DIFFERENTIABLE)
def test_jvp_matches_finite_differences(record: Record) -> None:
    found = derivatives(record)
    assert_close(found["jvp"], _differences(found["ahead"], found["behind"]), 1e-6)


@pytest.mark.feature("AD-01")
@by_record(_DIFFERENTIABLE)
def test_vjp_is_adjoint_to_jvp(record: Record) -> None:
    found = derivatives(record)
    forward = _pairing(found["cotangents"], found["jvp"])
    backward = _pairing(found["vjp"], found["tangents"])
    assert forward == pytest.approx(backward, rel=1e-9, abs=1e-9)


@pytest.mark.feature("AD-01")
@by_record([r for r in _DIFFERENTIABLE if r.order > 1])
def test_second_derivative_matches_finite_differences(record: Record) -> None:
    found = derivatives(record)
    assert_close(found["second"], _differences(found["vjp ahead"], found["vjp behind"]), 1e-5)


def _axes_to_map(ndims: list[int]) -> list[tuple[int | None, ...]]:
    """All arguments mapped along their first axis, or last; each one alone."""
    first = tuple(0 for _ in ndims)
    alone = [tuple(0 if i == j else None for j in range(len(ndims))) for i in range(len(ndims))]
    return list(dict.fromkeys([first, tuple(ndims), *alone]))


@pytest.mark.feature("BT-01")
@by_record(_BATCHABLE)
def test_vmap_matches_a_loop(record: Record) -> None:
    args = record.make_args(record.dtypes[0])
    batches = [_shuffled(args, seed) for seed in range(_BATCH)]
    combinations = _axes_to_map([x.ndim for x in args])

    def stacked(axes: tuple[int | None, ...]) -> list[Any]:
        columns = zip(*batches, strict=True)
        return [
            column[0] if axis is None else np.stack(column, axis)
            for column, axis in zip(columns, axes, strict=True)
        ]

    def example(batch: tuple[Any, ...], axes: tuple[int | None, ...]) -> list[Any]:
        own = (args[i] if axis is None else batch[i] for i, axis in enumerate(axes))
        return leaves(record.call(*own))

    def batched(inputs: list[Any]) -> list[Any]:
        return [
            minijax.vmap(record.call, in_axes=axes)(*mapped)
            for axes, mapped in zip(combinations, inputs, strict=True)
        ]

    with wide_if(record.dtypes[0]):
        actual = minijax.jit(batched)([stacked(axes) for axes in combinations])
        for axes, outs in zip(combinations, actual, strict=True):
            rows = [example(batch, axes) for batch in batches]
            expected = [np.stack(column) for column in zip(*rows, strict=True)]
            assert_close(outs, expected, record.tolerance_for(record.dtypes[0]))


def _shuffled(args: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """Other arguments of the same distribution: the same elements in another order."""
    rng = np.random.default_rng(seed)
    return tuple(rng.permutation(x.ravel()).reshape(x.shape) if seed else x for x in args)


_ERRORS = [
    pytest.param(sample, id=f"{record.id}-{i}")
    for record in RECORDS
    for i, sample in enumerate(record.errors)
]


@pytest.mark.parametrize("sample", _ERRORS)
def test_faulty_call_is_refused(sample: Any) -> None:
    with pytest.raises(sample.type, match=sample.match):
        sample.call(*sample.args)


@pytest.mark.feature("NP-01")
def test_every_primitive_of_lax_has_a_record() -> None:
    lax = str(Path(minijax.__file__).parent / "lax")
    primitives = {name for name, p in PRIMITIVES.items() if p.declared_at.startswith(lax)}
    # Tokens hold no values for laws to compare; tests/core/test_effects.py tests them.
    tokens = {"create_token", "after_all"}
    # What calls Python has no derivative and an effect; test_host_callbacks.py tests it, and
    # test_inspection.py what calls while it is compiled.
    callbacks = {"debug_callback", "inspect_sharding", "io_callback", "pure_callback"}
    # A constraint moves values between devices and computes nothing; tests/sharding tests it.
    placements = {"sharding_constraint"}
    # What speaks of named axes has no meaning by itself; tests/lax/collectives and the laws of
    # minijax.testing test it.
    collectives = {name for name, p in PRIMITIVES.items() if "collectives" in p.declared_at}
    # Copies between references and operations on counters have no results;
    # tests/experimental/test_cores.py tests them.
    copies = {"dma_start", "dma_wait", "semaphore_signal", "semaphore_wait"}
    records = {record.name for record in RECORDS}
    # What it computes is the user's: tests/extend/ffi brings kernels.
    foreign = {"ffi_call"}
    # Formulas of `scipy.special` and `scipy.stats`, which tests/scipy compares with SciPy.
    formulas = {name for name, p in PRIMITIVES.items() if isinstance(p, Elementwise)}
    others = tokens | callbacks | placements | collectives | copies | foreign | formulas
    assert primitives - others - records == set()
