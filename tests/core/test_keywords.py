"""A keyword that a public function does not have is refused by a text that proposes one."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

pytestmark = pytest.mark.feature("UX-01")

PACKAGE = Path(jax.__file__).parent
MATRIX = jnp.ones((2, 3))


def misspelled(name: str) -> str:
    return name[:-1] if name.endswith("s") else name + "s"


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    seen: set[int] = set()
    call = "\ndeferral.publish(globals())"
    public = [file for file in PACKAGE.rglob("*.py") if call in file.read_text()]
    for stub in sorted([*PACKAGE.rglob("*.pyi"), *public]):
        path = ".".join(stub.relative_to(PACKAGE.parent).with_suffix("").parts)
        path = path.removesuffix(".__init__")
        module = importlib.import_module(path)
        for name in module.__dir__():
            value = getattr(module, name)
            is_ours = hasattr(value, "__code__") and value.__module__.startswith("minijax")
            if is_ours and id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}", value


def options(function: Callable[..., object]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Calls with all required arguments, and an option by a name that is slightly wrong."""
    parameters = inspect.signature(function).parameters
    kinds = inspect.Parameter
    required = {n: p for n, p in parameters.items() if p.default is p.empty}
    if any(parameter.kind is kinds.VAR_KEYWORD for parameter in parameters.values()):
        return
    by_place = [p for p in required.values() if p.kind in (0, 1)]
    args = [jax.random.key(0) if p.name == "key" else 1.0 for p in by_place]
    by_name = {n: 1.0 for n, p in required.items() if p.kind is kinds.KEYWORD_ONLY}
    for name, parameter in parameters.items():
        is_option = parameter.default is not parameter.empty
        is_option = is_option and parameter.kind is not kinds.POSITIONAL_ONLY
        if is_option and len(name) > 1 and misspelled(name) not in parameters:
            yield args, {**by_name, misspelled(name): None}


def test_every_public_function_names_a_near_keyword() -> None:
    count, silent = 0, []
    for path, function in public_functions():
        for args, kwargs in options(function):
            count += 1
            with pytest.raises(TypeError) as caught:
                function(*args, **kwargs)
            if "did you mean" not in str(caught.value):
                silent.append((path, *kwargs))
    assert not silent
    assert count > 1200


@pytest.mark.parametrize(
    ("call", "name", "meant"),
    [
        (lambda: jax.grad(abs, argnum=0), "grad", "argnums"),
        (lambda: jax.jit(abs, static_argnum=0), "jit", "static_argnums"),
        (lambda: jax.jit(static_argnum=0)(abs), "jit", "static_argnums"),
        (lambda: jax.vmap(abs, inaxes=0), "vmap", "in_axes"),
        (lambda: jax.shard_map(abs, in_spec=jax.P(), out_specs=jax.P()), "shard_map", "in_specs"),
        (lambda: jnp.transpose(MATRIX, axis=(1, 0)), r"numpy\.transpose", "axes"),
        (lambda: jnp.zeros(3, type=float), r"numpy\.zeros", "dtype"),
        (lambda: jnp.ones(3, shapes=3), r"numpy\.ones", "shape"),
        (lambda: jnp.expand_dims(MATRIX, 0, dim=0), r"numpy\.expand_dims", "axis"),
        (lambda: MATRIX.sum(dim=0), r"numpy\.sum", "axis"),
        (lambda: MATRIX.astype(int, copies=True), "astype", "copy"),
        (lambda: MATRIX.at[0].set(1.0, modes="drop"), r"IndexUpdateRef\.set", "mode"),
        (lambda: jax.tree.map(abs, [1], isleaf=None), r"tree\.map", "is_leaf"),
        (lambda: lax.psum(1, "i", axis_index_group=None), r"lax\.psum", "axis_index_groups"),
        (lambda: jax.make_mesh((1,), ("x",), axis_type=None), "make_mesh", "axis_types"),
        (lambda: jax.ShapeDtypeStruct((2,), int, shard=None), "ShapeDtypeStruct", "sharding"),
        (lambda: jax.NamedSharding(None, jax.P(), memory=None), "NamedSharding", "memory_kind"),
    ],
)  # fmt: skip
def test_the_text_names_the_function_and_the_keyword(
    call: Callable[[], object], name: str, meant: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: got an unexpected keyword(.|\n)*'{meant}'\?"):
        call()


def test_parameters_are_not_taken_for_names_of_the_boundary() -> None:
    with pytest.raises(TypeError, match="'<' not supported"):
        jax.debug.breakpoint(num_frames="all", filter_frames=True)  # type: ignore[arg-type]


def test_keywords_of_the_user_s_functions_are_theirs() -> None:
    def f(x: jax.Array, *, scale: float) -> jax.Array:
        return x * scale

    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'scales'"):
        jax.vmap(f)(jnp.ones(2), scales=jnp.ones(2))
    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'scales'"):
        jax.jit(f)(jnp.ones(2), scales=2.0)


def pair(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + y


def triple(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    return x + y + z


@pytest.mark.parametrize(
    ("call", "note"),
    [
        (lambda: lax.fori_loop(0, 3, triple, 1.0), "lax.fori_loop calls triple with 2"),
        (lambda: jax.jit(lambda n: lax.fori_loop(0, n, triple, 1.0))(3), "calls triple with 2"),
        (lambda: lax.map(pair, jnp.ones(2)), "lax.map calls pair with 1 positional argument"),
        (lambda: lax.map(pair, jnp.ones(2), batch_size=2), "lax.map calls pair with 1"),
        (lambda: lax.while_loop(lambda x: x < 1, pair, 0), "lax.while_loop calls pair with 1"),
        (lambda: lax.while_loop(pair, lambda x: x, 0), "lax.while_loop calls pair with 1"),
        (lambda: lax.scan(triple, 0.0, jnp.ones(2)), "lax.scan calls triple with 2"),
        (lambda: lax.scan(jnp.sin, 0.0, jnp.ones(2)), "lax.scan calls sin with 2"),
        (lambda: lax.cond(True, pair, pair, 1.0), "lax.cond calls pair with 1"),
        (lambda: lax.switch(0, [pair, pair], 1.0), "lax.switch calls pair with 1"),
        (lambda: jnp.fromfunction(triple, (2, 2)), "numpy.fromfunction calls triple with 2"),
    ],
)  # fmt: skip
def test_bodies_say_with_how_many_arguments_they_are_called(
    call: Callable[[], object], note: str
) -> None:
    with pytest.raises(TypeError, match=r"\(\) (takes|missing)") as caught:
        call()
    assert sum(note in given for given in caught.value.__notes__) == 1
    assert sum(" calls " in given for given in caught.value.__notes__) == 1


def test_a_slip_inside_a_body_is_not_one_of_its_arguments() -> None:
    def body(i: jax.Array, x: jax.Array) -> jax.Array:
        return pair(x)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"pair\(\) missing") as caught:
        lax.fori_loop(0, 3, body, 1.0)
    assert not [note for note in getattr(caught.value, "__notes__", ()) if " calls " in note]
