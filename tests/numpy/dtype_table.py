"""The dtypes of results, of calls over many dtypes: of minijax, or of JAX, as a file records them.

`python tests/numpy/dtype_table.py record`, where JAX is installed, writes `dtype_table.json` anew:
it finds for each public function a call that works, unless one is written below.
"""

import importlib
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("dtype_table.json")
ROOMS = ("numpy", "numpy.fft", "numpy.linalg", "lax", "nn", "scipy.special")
KINDS = {
    False: (
        "bool",
        "int8",
        "uint8",
        "int32",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
        "~int32",
        "~float32",
    ),
    True: ("int32", "int64", "float32", "float64", "complex128", "~int64", "~float64"),
}
"""By whether x64 is on; "~" marks weak types."""

# m is a matrix, v a vector of 4, s a scalar, i a vector of int32.
PATTERNS = (
    "f(m)",
    "f(m, m)",
    "f(v)",
    "f(v, v)",
    "f(m, m, m)",
    "f(v, v, v)",
    "f([m, m])",
    "f(m, 1)",
    "f(m, (1, 0))",
    "f(m, i)",
    "f(v, i)",
    "f(i, v)",
    "f(s, s, s, s)",
    "f(m, m.dtype)",
)
WRITTEN = {
    "numpy.apply_along_axis": "f(jnp.sum, 0, m)",
    "numpy.apply_over_axes": "f(jnp.sum, m, [0])",
    "numpy.argwhere": "f(m, size=2)",
    "numpy.astype": "f(m, 'float32')",
    "numpy.bartlett": "f(4)",
    "numpy.bincount": "f(v, length=4)",
    "numpy.blackman": "f(4)",
    "numpy.broadcast_to": "f(v, (2, 4))",
    "numpy.eye": "f(2)",
    "numpy.fill_diagonal": "f(m, s, inplace=False)",
    "numpy.hamming": "f(4)",
    "numpy.hanning": "f(4)",
    "numpy.identity": "f(2)",
    "numpy.indices": "f((2, 2))",
    "numpy.kaiser": "f(4, s)",
    "numpy.moveaxis": "f(m, 0, 1)",
    "numpy.ones": "f(2)",
    "numpy.polyfit": "f(v, v, 1)",
    "numpy.put_along_axis": "f(v, i, v, 0, inplace=False)",
    "numpy.reshape": "f(m, 4)",
    "numpy.roots": "f(v, strip_zeros=False)",
    "numpy.swapaxes": "f(m, 0, 1)",
    "numpy.tri": "f(3)",
    "numpy.tril_indices": "f(3)",
    "numpy.triu_indices": "f(3)",
    "numpy.unpackbits": "f(v)",
    "numpy.zeros": "f(2)",
    "numpy.fft.fftfreq": "f(4)",
    "numpy.fft.rfftfreq": "f(4)",
    "numpy.linalg.cross": "f(v[:3], v[:3])",
    "numpy.choose": "f(i, [v, v], mode='wrap')",
    "numpy.compress": "f(np.array([True, False]), m, size=1)",
    "numpy.delete": "f(v, 1)",
    "numpy.einsum": "f('ij,jk', m, m)",
    "numpy.extract": "f(np.array([True, False, True, True]), v, size=2)",
    "numpy.flatnonzero": "f(m, size=2)",
    "numpy.full": "f((2,), s)",
    "numpy.full_like": "f(m, 1.5)",
    "numpy.insert": "f(v, 1, s)",
    "numpy.interp": "f(v, v, v)",
    "numpy.intersect1d": "f(v, v, size=2)",
    "numpy.linspace": "f(s, s, 3)",
    "numpy.logspace": "f(s, s, 3)",
    "numpy.geomspace": "f(s, s, 3)",
    "numpy.nonzero": "f(m, size=2)",
    "numpy.nanpercentile": "f(v, 50)",
    "numpy.nanquantile": "f(v, 0.5)",
    "numpy.outer": "f(v, v)",
    "numpy.percentile": "f(v, 50)",
    "numpy.piecewise": "f(v, [v > 1], [2.0, lambda x: x])",
    "numpy.poly": "f(v)",
    "numpy.polyadd": "f(v, v)",
    "numpy.polyder": "f(v)",
    "numpy.polyint": "f(v)",
    "numpy.polysub": "f(v, v)",
    "numpy.roll": "f(v, 1)",
    "numpy.unravel_index": "f(i, (2, 2))",
    "numpy.place": "f(v, np.array([True, False, True, True]), v, inplace=False)",
    "numpy.put": "f(v, i, v, inplace=False)",
    "numpy.quantile": "f(v, 0.5)",
    "numpy.repeat": "f(v, 2)",
    "numpy.select": "f([np.array([True, False, True, True])], [v])",
    "numpy.setdiff1d": "f(v, v, size=2)",
    "numpy.setxor1d": "f(v, v, size=2)",
    "numpy.take": "f(v, i)",
    "numpy.tile": "f(v, 2)",
    "numpy.union1d": "f(v, v, size=2)",
    "numpy.unique": "f(v, size=2)",
    "numpy.unique_values": "f(v, size=2)",
    "numpy.unique_all": "f(v, size=2)",
    "numpy.unique_counts": "f(v, size=2)",
    "numpy.unique_inverse": "f(v, size=2)",
    "numpy.where": "f(m > 1, m, 1.5)",
    "numpy.vander": "f(v, 3)",
    "lax.argmax": "f(v, 0, 'int32')",
    "lax.argmin": "f(v, 0, 'int32')",
    "lax.associative_scan": "f(lax.add, v)",
    "lax.bitcast_convert_type": "f(v, v.dtype)",
    "lax.broadcast": "f(v, (2,))",
    "lax.broadcast_in_dim": "f(v, (2, 4), (1,))",
    "lax.clamp": "f(s, v, s)",
    "lax.concatenate": "f([v, v], 0)",
    "lax.conv": "f(m.reshape(1, 1, 4), m.reshape(1, 1, 4), (1,), 'SAME')",
    "lax.convert_element_type": "f(v, 'float32')",
    "lax.conv_transpose": "f(m.reshape(1, 4, 1), m.reshape(4, 1, 1), (1,), 'SAME')",
    "lax.cond": "f(True, lambda x: x, lambda x: x, v)",
    "lax.cumsum": "f(v)",
    "lax.dynamic_update_index_in_dim": "f(v, s, 1, 0)",
    "lax.dynamic_update_slice_in_dim": "f(v, v, 1, 0)",
    "lax.fft": "f(v, 'FFT', (4,))",
    "lax.fori_loop": "f(0, 3, lambda i, c: c, v)",
    "lax.map": "f(lambda x: x, v)",
    "lax.ragged_dot": "f(m, m[None], i[:1])",
    "lax.scan": "f(lambda c, x: (c, x), s, v)",
    "lax.while_loop": "f(lambda c: False, lambda c: c, v)",
    "lax.dot_general": "f(m, m, (((1,), (0,)), ((), ())))",
    "lax.dynamic_index_in_dim": "f(v, 1)",
    "lax.dynamic_slice": "f(v, (1,), (2,))",
    "lax.dynamic_slice_in_dim": "f(v, 1, 2)",
    "lax.dynamic_update_slice": "f(v, v, (1,))",
    "lax.expand_dims": "f(v, (0,))",
    "lax.full": "f((2,), s)",
    "lax.full_like": "f(v, 2)",
    "lax.index_in_dim": "f(v, 1)",
    "lax.index_take": "f(m, (i,), (0,))",
    "lax.integer_pow": "f(v, 3)",
    "lax.pad": "f(v, s, [(1, 1, 0)])",
    "lax.pow": "f(v, v)",
    "lax.reduce": "f(v, np.zeros((), v.dtype), lax.add, (0,))",
    "lax.reduce_precision": "f(v, 5, 3)",
    "lax.reduce_sum": "f(v, (0,))",
    "lax.reduce_max": "f(v, (0,))",
    "lax.reduce_min": "f(v, (0,))",
    "lax.reduce_prod": "f(v, (0,))",
    "lax.reduce_and": "f(v, (0,))",
    "lax.reduce_or": "f(v, (0,))",
    "lax.reduce_xor": "f(v, (0,))",
    "lax.reduce_window": "f(v, np.zeros((), v.dtype), lax.add, (2,), (1,), 'VALID')",
    "lax.reshape": "f(m, (4,))",
    "lax.rev": "f(v, (0,))",
    "lax.select": "f(v > 1, v, v)",
    "lax.select_n": "f(v > 1, v, v)",
    "lax.slice": "f(v, (1,), (2,))",
    "lax.slice_in_dim": "f(v, 1, 2)",
    "lax.sort_key_val": "f(v, v)",
    "lax.split": "f(v, (2, 2))",
    "lax.squeeze": "f(m[:1], (0,))",
    "lax.tile": "f(v, (2,))",
    "lax.top_k": "f(v, 2)",
    "lax.transpose": "f(m, (1, 0))",
    "nn.dot_product_attention": "f(*[m.reshape(1, 2, 1, 2)] * 3)",
    "nn.one_hot": "f(v, 3)",
    "scipy.special.bernoulli": "f(3)",
    "scipy.special.bessel_jn": "f(v, v=2, n_iter=5)",
    "scipy.special.polygamma": "f(1, v)",
    "scipy.special.multigammaln": "f(v, 2)",
    "scipy.special.sph_harm_y": "f(i, i, v, v, n_max=3)",
    "scipy.special.expn": "f(2, v)",
}
# Functions of other things than arrays, or with results of chance.
LEFT_OUT = frozenset(
    {
        "numpy.array_repr",
        "numpy.array_str",
        "numpy.save",
        "numpy.savez",
        "numpy.load",
        "numpy.fromfile",
        "numpy.from_dlpack",
        "numpy.printoptions",
        "numpy.get_printoptions",
        "numpy.ndim",
        "numpy.shape",
        "numpy.size",
        "numpy.isscalar",
        "numpy.iterable",
        "numpy.array_equal",
        "numpy.array_equiv",
        "numpy.can_cast",
        "numpy.isdtype",
        "numpy.broadcast_shapes",
        "numpy.issubdtype",
        "lax.dce_sink",
        "lax.after_all",
        "lax.create_token",
        "lax.stage",
        "lax.rng_uniform",
        "lax.all_gather_reduced",
        "lax.pmax",
        "lax.pmean",
        "lax.pmin",
        "lax.psum",
        "lax.rng_bit_generator",
        "lax.shape_as_value",
        "lax.infeed",
        "lax.outfeed",
        "lax.with_sharding_constraint",
        "lax.dtype",
    }
)

WITHOUT_ARRAYS = frozenset(
    f"numpy.{name}"
    for name in (
        "arange",
        "diag_indices",
        "dsplit",
        "einsum_path",
        "empty",
        "frombuffer",
        "finfo",
        "iinfo",
        "fromfunction",
        "fromiter",
        "frompyfunc",
        "fromstring",
        "linalg.tensorsolve",
        "mask_indices",
        "promote_types",
        "ravel_multi_index",
        "result_type",
        "set_printoptions",
        "trim_zeros",
        "unpackbits",
        "vectorize",
    )
)
"""Functions of shapes, dtypes and functions, and of arrays that must be known or whole bytes."""


def functions(library: str) -> dict[str, Any]:
    """The public functions of the rooms, by their paths."""
    found = {}
    for room in ROOMS:
        try:
            module = importlib.import_module(f"{library}.{room}")
        except ImportError:
            continue
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            if not name.startswith("_") and callable(value) and not inspect.isclass(value):
                found[f"{room}.{name}"] = value
    return found


def types_of(library: str, function: Any, call: str, kind: str) -> str:
    """The dtypes of the results of a call for arguments of one kind; or the kind of error."""
    jax = importlib.import_module(library)
    jnp = jax.numpy
    is_weak, name = kind.startswith("~"), kind.removeprefix("~")

    def staged(m: Any, v: Any, s: Any, i: Any) -> Any:
        scope = {"f": function, "jnp": jnp, "lax": jax.lax, "np": importlib.import_module("numpy")}
        return eval(call, scope | {"m": m, "v": v, "s": s, "i": i})

    def argument(*shape: int) -> Any:
        dtype = importlib.import_module("numpy").dtype(getattr(jnp, name).dtype)
        return jax.ShapeDtypeStruct(shape, dtype, weak_type=is_weak)

    places = jax.ShapeDtypeStruct((4,), "int32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = jax.eval_shape(staged, argument(2, 2), argument(4), argument(), places)
        except Exception as error:
            if isinstance(error, (TypeError, ValueError, NotImplementedError)):
                return "-"
            raise
    leaves = jax.tree.leaves(out)
    # A weak boolean is none: no dtype gives way to it.
    weak = ["~" if x.weak_type and x.dtype != bool else "" for x in leaves]
    return ",".join(mark + str(x.dtype) for mark, x in zip(weak, leaves, strict=True))


def _record() -> None:
    jax = importlib.import_module("jax")
    table: dict[str, dict[str, Any]] = {}
    for path, function in functions("jax").items():
        if path in LEFT_OUT:
            continue
        found = _first_that_works(path, function)
        if found is None:
            print("no call for", path)  # noqa: T201
            continue
        table[path] = {"call": found}
        for x64, kinds in KINDS.items():
            with jax.enable_x64(x64):
                try:
                    rows = [types_of("jax", function, found, kind) for kind in kinds]
                except Exception as error:
                    print("left out", path, type(error), error)  # noqa: T201
                    del table[path]
                    break
            table[path]["x64" if x64 else "x32"] = " ".join(rows)
    RECORDED.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")


def _first_that_works(path: str, function: Any) -> str | None:
    calls = (WRITTEN[path],) if path in WRITTEN else PATTERNS
    for call in calls:
        for kind in ("float32", "int32", "bool", "complex64"):
            try:
                found = types_of("jax", function, call, kind)
            except Exception:
                continue
            if found not in ("-", ""):
                return call
    return None


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    _record()
