"""Laws that hold of public functions, checked on calls that their records draw."""

from __future__ import annotations

import functools
import importlib
import warnings
import zlib
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

import minijax
import minijax.numpy as jnp
from minijax import tree
from minijax.core import config
from minijax.core.config import enable_x64
from minijax.runtime import client
from tests.numpy.records import TOLERANCES, Call, Draw, Record, Shape
from tests.scipy.special import samples

_HERE = Path(__file__).parent
_MODULES = [importlib.import_module(f"tests.numpy.{p.stem}") for p in _HERE.glob("records_*.py")]
RECORDS: list[Record] = sorted(
    (record for module in _MODULES for record in module.RECORDS), key=lambda record: record.id
)

# A fourth of what the profile asks for: each example is a program that has to be compiled.
_EXAMPLES = max(6, settings().max_examples // 4)
_OPTIONS = dict(client.ONE_OPERATION)
_STEP = 1e-6
_BATCH = 2


def by_record(records: list[Record]) -> Any:
    """Runs a test once for each record."""
    return pytest.mark.parametrize("record", records, ids=lambda record: record.id)


class Drawn(Draw):
    """Arguments that Hypothesis draws."""

    def __init__(self, draw: Any, x64: bool) -> None:
        super().__init__(x64)
        self._draw = draw

    def of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def quarters(self, shape: Shape, low: float, high: float) -> np.ndarray[Any, Any]:
        elements = st.integers(int(np.ceil(4 * low)), int(np.floor(4 * high)))
        drawn = numpy_strategies.arrays(np.int64, shape, elements=elements, fill=st.nothing())
        return np.asarray(self._draw(drawn) / 4)

    def specials(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not self._draw(st.booleans()):
            return x
        numbers = st.sampled_from([np.nan, np.inf, -np.inf, -0.0])
        places = st.booleans()
        drawn = numpy_strategies.arrays(np.float64, x.shape, elements=numbers, fill=st.nothing())
        chosen = numpy_strategies.arrays(np.bool_, x.shape, elements=places, fill=st.nothing())
        return np.where(self._draw(chosen), self._draw(drawn), x)


class Generic(Draw):
    """The first of all choices, and random numbers: nothing is special."""

    def __init__(self, seed: int) -> None:
        super().__init__(x64=True)
        self._rng = np.random.default_rng(seed)

    def of(self, *choices: Any) -> Any:
        return choices[0]

    def quarters(self, shape: Shape, low: float, high: float) -> np.ndarray[Any, Any]:
        return np.asarray(self._rng.uniform(low, high, shape))

    def specials(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x


class Seeded(Generic):
    """Any choices, and random numbers."""

    def __init__(self, seed: int, x64: bool) -> None:
        super().__init__(seed)
        self.x64 = x64

    def of(self, *choices: Any) -> Any:
        return choices[self._rng.integers(len(choices))]


@st.composite
def calls(draw: Any, record: Record) -> tuple[bool, Call]:
    """Whether 64 bits are on, and a call of a record."""
    x64 = draw(st.booleans())
    return x64, record.draw(Drawn(draw, x64))


def assert_close(found: Any, wanted: Any, tolerance: float = 1.0) -> None:
    """Compares trees of arrays: shapes, where they are NaN or infinite, and values."""
    found, wanted = ([np.asarray(x) for x in tree.leaves(xs)] for xs in (found, wanted))
    assert [x.shape for x in found] == [x.shape for x in wanted]
    for x, y in zip(found, wanted, strict=True):
        bound = TOLERANCES.get(x.dtype.name)
        if bound is None:
            np.testing.assert_array_equal(x, y.astype(x.dtype))
        else:
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            largest = np.max(np.abs(y[np.isfinite(y.astype(wide))]), initial=1.0)
            np.testing.assert_allclose(
                x.astype(wide),
                y.astype(wide),
                rtol=bound * tolerance,
                atol=bound * tolerance * largest,
            )


def kinds_of(x: Any) -> list[str]:
    """The kinds of dtypes in a tree."""
    return [np.asarray(leaf).dtype.kind.replace("V", "f") for leaf in tree.leaves(x)]


def traced(record: Record, options: dict[str, Any]) -> Any:
    """The function under `jit`: by its name and options, it shares executables with eager calls."""
    function = record.function()

    def call(*args: Any) -> Any:
        return function(*args, **options)

    call.__name__ = record.name.rpartition(".")[2]
    return minijax.jit(call, compiler_options=_OPTIONS)


def check_call(record: Record, x64: bool, call: Call) -> None:
    function = record.function()
    with enable_x64(x64):
        found = function(*call.args, **call.options)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = record.expected(call)
        assert_close(found, wanted, record.tolerance)
        if record.kinds is True:
            assert kinds_of(found) == kinds_of(wanted)
        if record.jit is True:
            again = traced(record, call.options)(*call.args)
            assert [x.dtype for x in tree.leaves(again)] == [x.dtype for x in tree.leaves(found)]
            assert_close(again, found, 0.2 * record.tolerance)


@pytest.mark.feature("NP-01")
@by_record(RECORDS)
def test_function_is_its_oracle_eagerly_and_compiled(record: Record) -> None:
    @seed(zlib.crc32(record.id.encode()))
    @settings(max_examples=_EXAMPLES)
    @given(drawn=calls(record))
    def check(drawn: tuple[bool, Call]) -> None:
        check_call(record, *drawn)

    check()


def generic_calls(record: Record) -> list[Call]:
    """Calls of the same types and options, at points where nothing is special."""
    return [record.draw(Generic(seed)) for seed in range(_BATCH)]


def batches(record: Record, calls: list[Call]) -> dict[str, Any]:
    """The results of all calls: of each by itself, and of all in one batch."""
    function = minijax.tree_util.Partial(record.function(), **calls[0].options)
    stacked = tree.map(lambda *xs: jnp.stack(xs), *(call.args for call in calls))
    return {
        "rows": [function(*call.args) for call in calls],
        "batch": minijax.vmap(function)(*stacked),
    }


def derivatives(record: Record, call: Call) -> dict[str, Any]:
    """The derivatives of a call, and those of its differences."""
    rng = np.random.default_rng(0)
    function = record.function()

    def part(*primals: Any) -> list[Any]:
        args = list(call.args)
        for i, x in zip(record.grad, primals, strict=True):
            args[int(i)] = x
        outs = tree.leaves(function(*args, **call.options))
        return [x for x in outs if jnp.issubdtype(x.dtype, np.inexact)]

    def random_like(x: Any) -> Any:
        noise = rng.standard_normal(x.shape)
        return noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise

    primals = tuple(call.args[int(i)] for i in record.grad)
    tangents = tree.map(random_like, primals)
    results, pushed = minijax.jvp(part, primals, tangents)
    cotangents = [jnp.asarray(random_like(x), x.dtype) for x in results]
    ahead, behind = (
        part(*tree.map(lambda x, v, h=h: x + h * v, primals, tangents)) for h in (_STEP, -_STEP)
    )
    pulled = minijax.vjp(part, *primals)[1](cotangents)
    return {
        "jvp": pushed,
        "differences": [(x - y) / (2 * _STEP) for x, y in zip(ahead, behind, strict=True)],
        "forward": paired(cotangents, pushed),
        "backward": paired(tree.leaves(pulled), tree.leaves(tangents)),
    }


def paired(xs: Any, ys: Any) -> Any:
    """The inner product of two lists of arrays."""
    return sum((x * y).real.sum() for x, y in zip(xs, ys, strict=True))


@pytest.mark.feature("BT-01", "AD-01")
@by_record([r for r in RECORDS if r.vmap is True or not isinstance(r.grad, str)])
def test_function_has_batches_and_derivatives(record: Record) -> None:
    generic = generic_calls(record)

    def compute(args: list[Any]) -> tuple[Any, Any]:
        given = [Call(xs, call.options) for xs, call in zip(args, generic, strict=True)]
        batch = batches(record, given) if record.vmap is True else None
        return batch, None if isinstance(record.grad, str) else derivatives(record, given[0])

    with enable_x64(True):
        run = minijax.jit(compute, compiler_options=_OPTIONS) if record.jit is True else compute
        batch, slopes = run([call.args for call in generic])
        if batch is not None:
            rows = tree.map(lambda *xs: np.stack(xs), *batch["rows"])
            assert_close(batch["batch"], rows)
        if slopes is not None:
            scale = record.slope / TOLERANCES["float64"]
            assert_close(slopes["jvp"], slopes["differences"], scale)
            np.testing.assert_allclose(slopes["forward"], slopes["backward"], rtol=1e-9, atol=1e-9)
            assert any(np.any(np.asarray(x) != 0) for x in slopes["jvp"])


STRICT = {
    "rank": config.numpy_rank_promotion("raise"),
    "dtype": config.numpy_dtype_promotion("strict"),
}
HARMLESS = {"leaks": config.check_tracer_leaks(True), "no jit": config.disable_jit(True)}


# What they do with results, and clip's numbers beside integers, is refused rightly.
MIXING = ("numpy.apply_along_axis", "numpy.clip", "numpy.empty_like", "numpy.linalg.eigh")
MIXING += ("numpy.linalg.svd", "scipy.linalg.cho_factor")


def are_alike(setting: str, call: Call) -> bool:
    """Whether the arrays that the user gives agree in what a strict setting is about."""
    arrays = [x for x in tree.leaves((call.args, call.options)) if hasattr(x, "dtype")]
    ranks = {x.ndim for x in arrays if x.ndim}
    return len(ranks if setting == "rank" else {x.dtype for x in arrays}) <= 1


@pytest.mark.feature("UX-03")
@by_record(RECORDS)
def test_function_obeys_strict_settings_about_what_it_computes_itself(record: Record) -> None:
    for number in range(6):
        x64 = bool(number % 2)
        with enable_x64(x64):
            call = record.draw(Seeded(number, x64))
            names = [name for name in STRICT if name == "rank" or record.name not in MIXING]
            settings = [STRICT[name] for name in names if are_alike(name, call)]
            function = functools.partial(record.function(), **call.options)
            for setting in settings:
                with setting:
                    if record.jit is True:
                        minijax.eval_shape(function, *call.args)
                    else:
                        function(*call.args)


@pytest.mark.feature("UX-03")
@pytest.mark.sampled(20)
@pytest.mark.parametrize("setting", HARMLESS)
@by_record(RECORDS)
def test_function_gives_the_same_under_settings(record: Record, setting: str) -> None:
    call = record.draw(Seeded(1, x64=True))
    with enable_x64(True):
        expected = record.function()(*call.args, **call.options)
        with HARMLESS[setting]:
            found = record.function()(*call.args, **call.options)
    assert_close(found, expected)


ROOMS = (
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "nn",
    "ops",
    "scipy.special",
    "scipy.linalg",
    "scipy.stats",
    "scipy.signal",
    "scipy.fft",
    "scipy.ndimage",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.cluster.vq",
    "image",
)

# What no record suits, or what has samples of another kind, by the test that has it.
ELSEWHERE = {
    "tests/core/test_dtypes.py": "can_cast promote_types result_type isdtype issubdtype finfo "
    "iinfo",
    "tests/numpy/test_description.py": "iscomplexobj isrealobj isscalar iterable ndim shape size "
    "fromfile load save savez array_repr array_str get_printoptions set_printoptions printoptions",
    "tests/numpy/test_shaping.py": "broadcast_shapes",
    "tests/numpy/test_contraction.py": "einsum_path",
    "tests/numpy/test_ufunc_methods.py": "frompyfunc",
    "tests/numpy/test_creation.py": "from_dlpack fromiter",
    "tests/nn/test_scaled.py": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "tests/scipy/special/test_values.py": "bernoulli bessel_jn gammasgn multigammaln sph_harm_y "
    "wofz",
    "tests/scipy/test_linalg.py": "expm_frechet funm sqrtm rsf2csf",
    "tests/scipy/test_signal.py": "istft",
    "tests/scipy/test_optimize.py": "minimize",
    "tests/image/test_resampling.py": "resize scale_and_translate",
}


@pytest.mark.feature("NP-01")
def test_every_function_has_a_record() -> None:
    recorded = {record.name for record in RECORDS}
    recorded |= {f"scipy.special.{sample.name}" for sample in samples.SAMPLES}
    elsewhere = {name for names in ELSEWHERE.values() for name in names.split()}
    public = {f"{room}.{name}" for room in ROOMS for name in public_functions(room)}
    without = {name.rpartition(".")[2] for name in public - recorded}
    assert without == elsewhere
    for path, names in ELSEWHERE.items():
        text = (_HERE.parents[1] / path).read_text(encoding="utf-8")
        assert [name for name in names.split() if name not in text] == []


def public_functions(room: str) -> list[str]:
    """The names of the functions of a module, without classes and modules."""
    module = importlib.import_module(f"minijax.{room}")
    names = [name for name in dir(module) if not name.startswith("_")]
    return [n for n in names if callable(getattr(module, n)) and not isclass(getattr(module, n))]
