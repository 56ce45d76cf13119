"""Exceptions end at the user's line, whatever of the package stood below it."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import source
from minijax.core.config import traceback_filtering
from minijax.experimental import sparse
from minijax.scipy.optimize import minimize
from minijax.scipy.sparse.linalg import cg
from minijax.scipy.spatial.transform import Rotation

pytestmark = pytest.mark.feature("UX-01")

PACKAGE = Path(jax.__file__).parent
MATRIX, VECTOR = jnp.ones((3, 2)), jnp.ones(3)


def raised(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as exception:
        return exception
    raise AssertionError("nothing was raised")


def files(traceback_: types.TracebackType | None) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(traceback_)]


def is_ours(file: str) -> bool:
    return file.startswith(str(PACKAGE) + os.sep)


SLIPS: dict[str, Callable[[], object]] = {
    "operator": lambda: MATRIX + VECTOR,
    "reflected operator": lambda: np.ones((3, 2)) + VECTOR,
    "unary operator": lambda: ~VECTOR,
    "ufunc": lambda: jnp.add(MATRIX, VECTOR),
    "method of a ufunc": lambda: jnp.add.reduce(VECTOR, axis=3),
    "numpy": lambda: jnp.dot(MATRIX, VECTOR),
    "lax": lambda: lax.add(MATRIX, VECTOR),
    "linear algebra": lambda: jnp.linalg.cholesky(VECTOR),
    "random": lambda: jax.random.normal((3,)),
    "method": lambda: VECTOR.reshape(5),
    "index": lambda: VECTOR[1.0],
    "update": lambda: VECTOR.at[0].set(MATRIX),
    "scalar": lambda: float(VECTOR),
    "truth": lambda: bool(VECTOR),
    "item": lambda: VECTOR.item(),
    "scalar type": lambda: jnp.float32(object()),
    "tree": lambda: jax.tree.map(lambda x, y: x, [1], [1, 2]),
    "mesh": lambda: jax.make_mesh((3, 5), ("a", "b")),
    "spec": lambda: jax.P("x", {1: 2}),
    "sharding": lambda: jax.NamedSharding(object(), jax.P()),  # type: ignore[arg-type]
    "description": lambda: jax.ShapeDtypeStruct((2,), "no dtype"),
    "setting": lambda: jax.config.update("jax_enable_x63", True),
    "context": lambda: jax.numpy_rank_promotion("perhaps"),
    "no function": lambda: jax.jit(3),  # type: ignore[call-overload]
    "a stage": lambda: jax.jit(lambda x: x).lower(VECTOR).compile()(MATRIX),
    "a custom rule": lambda: jax.custom_jvp(lambda x: x)(VECTOR),
    "a reference": lambda: jax.new_ref(VECTOR)[1.5],
    "a write": lambda: jax.new_ref(VECTOR).__setitem__(..., MATRIX),
    "a part of a reference": lambda: jax.new_ref(VECTOR).at[0, 0],
    "a reference as an array": lambda: np.asarray(jax.new_ref(VECTOR)),
    "gradients into references": lambda: jax.vjp(jnp.sin, 1.0)[1].with_refs(1, 2),
    "an initializer": lambda: jax.nn.initializers.glorot_normal()(jax.random.key(0), (3,)),
    "an optimizer": lambda: minimize(jnp.sum, MATRIX, method="BFGS"),
    "a solver": lambda: cg(lambda x: x[:2], VECTOR),
    "a sparse array": lambda: sparse.BCOO.fromdense(MATRIX).reshape(5),
    "an operator of a sparse array": lambda: sparse.BCOO.fromdense(MATRIX) @ VECTOR,
    "a function of sparse arrays": lambda: sparse.sparsify(jnp.sort)(sparse.BCOO.fromdense(MATRIX)),
    "a rotation": lambda: Rotation.from_rotvec(VECTOR).apply("x"),
    "a description as an array": lambda: np.asarray(jax.ShapeDtypeStruct((2,), "float32")),
}


@pytest.mark.parametrize("call", [pytest.param(c, id=n) for n, c in SLIPS.items()])
def test_exceptions_of_functions_end_where_the_user_called_them(call: Callable[[], object]) -> None:
    assert files(raised(call).__traceback__) == [__file__, __file__]


def user_function(x: jax.Array) -> jax.Array:
    return jnp.dot(x, VECTOR)


def branching(x: jax.Array) -> jax.Array:
    return x if x.sum() > 0 else -x


def with_rule(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    found = jax.custom_vjp(function)
    found.defvjp(lambda x: (function(x), x), lambda x, ct: (ct,))
    return found


MESH = jax.make_mesh((1,), ("i",))
CALLS: dict[str, Callable[[Callable[..., jax.Array]], object]] = {
    "jit": lambda f: jax.jit(f)(MATRIX),
    "jit of jit": lambda f: jax.jit(jax.jit(f))(MATRIX),
    "vmap": lambda f: jax.vmap(f)(jnp.ones((2, 3, 2))),
    "grad": lambda f: jax.grad(f)(MATRIX),
    "vjp": lambda f: jax.vjp(f, MATRIX),
    "jacfwd": lambda f: jax.jacfwd(f)(MATRIX),
    "hessian": lambda f: jax.hessian(f)(MATRIX),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(MATRIX),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0, MATRIX[None]),
    "while_loop": lambda f: lax.while_loop(lambda x: True, f, MATRIX),
    "cond": lambda f: lax.cond(True, f, f, MATRIX),
    "pmap": lambda f: jax.pmap(f)(MATRIX[None]),
    "shard_map": lambda f: jax.shard_map(f, mesh=MESH, in_specs=jax.P(), out_specs=jax.P())(MATRIX),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(MATRIX),
    "eval_shape": lambda f: jax.eval_shape(f, MATRIX),
    "lower": lambda f: jax.jit(f).lower(MATRIX),
    "map": lambda f: lax.map(f, MATRIX[None]),
    "custom_vjp": lambda f: with_rule(f)(MATRIX),
}


@pytest.mark.parametrize("name", CALLS)
def test_exceptions_inside_transformed_functions_show_both_lines_of_the_user(name: str) -> None:
    found = traceback.extract_tb(raised(lambda: CALLS[name](user_function)).__traceback__)
    assert not [frame for frame in found if is_ours(frame.filename)]
    assert found[-1].name == "user_function"
    assert len(found) <= 5


@pytest.mark.parametrize("name", ["jit", "scan", "lower", "make_jaxpr"])
def test_a_traced_branch_ends_at_its_line(name: str) -> None:
    found = traceback.extract_tb(raised(lambda: CALLS[name](branching)).__traceback__)
    assert found[-1].name == "branching"


def test_exceptions_of_the_user_keep_all_frames_of_the_user() -> None:
    def inner(x: jax.Array) -> jax.Array:
        raise KeyError("mine")

    def outer(x: jax.Array) -> jax.Array:
        return jax.vmap(inner)(x)

    exception = raised(lambda: jax.jit(outer)(VECTOR))
    assert type(exception) is KeyError
    names = [frame.name for frame in traceback.extract_tb(exception.__traceback__)]
    assert names == ["raised", "<lambda>", "outer", "inner"]


def test_causes_lose_the_frames_too() -> None:
    exception = raised(lambda: jnp.array([object()]))
    seen: list[BaseException] = []
    current: BaseException | None = exception
    while current is not None:
        seen.append(current)
        current = current.__cause__ or current.__context__
    assert not [file for each in seen for file in files(each.__traceback__) if is_ours(file)]


class TestModes:
    def test_off_leaves_all_frames(self) -> None:
        with traceback_filtering("off"):
            exception = raised(SLIPS["lax"])
        assert is_ours(files(exception.__traceback__)[-1])
        assert not hasattr(exception, "__notes__")

    @pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames"])
    def test_a_note_says_how_to_see_them(self, mode: str) -> None:
        with traceback_filtering(mode):
            exception = raised(lambda: jax.jit(jax.vmap(user_function))(MATRIX))
        assert [note.count("TRACEBACK_FILTERING=off") for note in exception.__notes__] == [1]
        assert exception.__cause__ is None

    def test_the_cause_can_keep_them(self) -> None:
        with traceback_filtering("remove_frames"):
            exception = raised(lambda: jax.jit(user_function)(MATRIX))
        assert not [file for file in files(exception.__traceback__) if is_ours(file)]
        cause = exception.__cause__
        assert isinstance(cause, source.UnfilteredStackTrace)
        whole = traceback.extract_tb(cause.__traceback__)
        assert is_ours(whole[-1].filename)
        assert "user_function" in [frame.name for frame in whole]

    def test_a_cause_of_ones_own_is_kept_behind_it(self) -> None:
        def f(x: jax.Array) -> jax.Array:
            raise ValueError("second") from KeyError("first")

        with traceback_filtering("remove_frames"):
            exception = raised(lambda: jax.jit(f)(VECTOR))
        assert exception.__cause__ is not None
        assert type(exception.__cause__.__cause__) is KeyError

    def test_frames_can_be_marked_for_ipython(self) -> None:
        with traceback_filtering("tracebackhide"):
            exception = raised(SLIPS["lax"])
        entries = list(traceback.walk_tb(exception.__traceback__))
        marked = [bool(f.f_locals.get("__tracebackhide__")) for f, _ in entries]
        assert marked == [is_ours(f.f_code.co_filename) for f, _ in entries]
        assert any(marked)

    def test_other_modes_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"one of 'auto', 'off', 'tracebackhide'"):
            traceback_filtering("some")

    def test_the_environment_sets_it(self) -> None:
        code = "import minijax.numpy as jnp\njnp.dot(jnp.ones(2), jnp.ones(3))"
        shown = {}
        for mode in ("off", "auto"):
            env = {**os.environ, "MINIJAX_TRACEBACK_FILTERING": mode}
            run = subprocess.run(
                [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
            )
            shown[mode] = run.stderr.count("  File ")
        assert shown["auto"] == 1
        assert shown["off"] > 5


class Other:
    """What no function takes."""


def public_callables() -> Iterator[tuple[str, Callable[..., object]]]:
    seen: set[int] = set()
    calls = ("source.shown(globals())", "\ndeferral.publish(globals())")
    showing = [file for file in PACKAGE.rglob("*.py") if any(c in file.read_text() for c in calls)]
    for stub in sorted([*PACKAGE.rglob("*.pyi"), *showing]):
        path = ".".join(stub.relative_to(PACKAGE.parent).with_suffix("").parts)
        path = path.removesuffix(".__init__")
        if any(part in path for part in ("profiler", "distributed", "extend", "testing", "ffi")):
            continue  # They change the process, or are called by other libraries.
        module = importlib.import_module(path)
        for name in module.__dir__():
            value = getattr(module, name)
            if name in {"breakpoint", "print_environment_info", "clear_caches", "clear_backends"}:
                continue
            if isinstance(value, types.FunctionType) and id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}", value


def test_no_public_function_shows_frames_of_the_package() -> None:
    shown, count = {}, 0
    for name, function in public_callables():
        for args in ((), (Other(),), (Other(), Other()), (Other(),) * 3):
            try:
                function(*args)
            except Exception as exception:
                count += 1
                ours = [file for file in files(exception.__traceback__) if is_ours(file)]
                if ours:
                    shown[name] = ours[0]
    assert not shown
    assert count > 2000


@pytest.mark.parametrize("function", [jnp.dot, lax.add, jax.random.normal, jax.tree.all, jnp.abs])
def test_public_functions_can_be_pickled(function: Callable[..., object]) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_names_of_one_function_are_one_object() -> None:
    assert jnp.abs is jnp.absolute
    assert jax.tree.map is jax.tree_util.tree_map is jax.tree_util.tree_map


class TestCells:
    def test_cells_of_notebooks_are_called_cells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = types.SimpleNamespace(
            format_code_name=lambda name: ("Cell", "In[3]") if "ipykernel" in name else None
        )
        shell = types.SimpleNamespace(compile=compiler)
        stand_in = types.SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", stand_in)
        frame = source.Frame("ipykernel_7/12345.py", 2, "f")
        assert str(frame) == "cell In[3], line 2 in f"
        assert str(source.Frame("model.py", 2, "f")) == "model.py:2 in f"
