"""The programs written per device that both libraries run for the comparison of their collectives.

Most are bodies of `shard_map` over a mesh with axes x of size 4 and y of size 2; each of these is
run with and without checks of variance, and most are differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from parity_sharded_programs import Place

CHECKED, UNCHECKED, BOTH = (True,), (False,), (True, False)


class PerDevice(NamedTuple):
    """A program.

    Attributes:
        function: what is run.
        args: its arguments.
        is_compiled: whether it has `lower` itself, as what `pmap` returns; else it is jitted.
        shows_borders: whether it says what passes its borders; else that is left to the library, as
            what is kept for derivatives.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    is_compiled: bool = False
    shows_borders: bool = True


class Body(NamedTuple):
    """A function of one block, to be mapped over the mesh.

    Attributes:
        function: the function.
        ins: the spec of its argument, as entries.
        outs: the spec of its result, as entries.
        modes: for which values of `check_vma` it is run.
        is_differentiated: whether its derivative is run, too.
        axes: the axes that become manual; all if empty.
    """

    function: Callable[[Any], Any]
    ins: tuple[Any, ...] = ("x", "y")
    outs: tuple[Any, ...] = ("x", "y")
    modes: tuple[bool, ...] = BOTH
    is_differentiated: bool = True
    axes: frozenset[str] = frozenset()


Bodies = dict[str, Body]
Programs = dict[str, PerDevice]


def build(jax: Any) -> Programs:
    """Every program by its name."""
    place = Place(jax)
    programs: Programs = {}
    groups = (
        _reductions,
        _gathers,
        _exchanges,
        _casts,
        _grouped,
        _control_flow,
        _transformed,
        _partial,
    )
    for group in groups:
        for name, body in group(jax).items():
            programs |= _mapped(jax, place, name, body)
    return {**programs, **_around(jax, place), **_pmapped(jax), **_batched(jax)}


def _floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.cos(np.arange(np.prod(shape))).astype(np.float32).reshape(shape)


def _mapped(jax: Any, place: Place, name: str, body: Body) -> Programs:
    """A body under `shard_map`, and its derivative."""
    x = _floats(16, 8)
    programs: Programs = {}
    for check in body.modes:
        mapped = jax.shard_map(
            body.function,
            mesh=place.mesh,
            in_specs=place.P(*body.ins),
            out_specs=place.P(*body.outs),
            check_vma=check,
            **({"axis_names": body.axes} if body.axes else {}),
        )
        mode = name if check else f"{name}-unchecked"
        programs[mode] = PerDevice(mapped, (x,))
        if body.is_differentiated:
            programs[f"{mode}-grad"] = PerDevice(_gradient(jax, mapped), (x,), shows_borders=False)
    return programs


def _gradient(jax: Any, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient of a weighted sum of squares of what a function gives."""

    def weighted(out: Any) -> Any:
        return jax.numpy.sum(_floats(*out.shape) * out**2)

    return jax.grad(lambda x: sum(map(weighted, jax.tree.leaves(function(jax.numpy.sin(x))))))


def _ring(size: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % size) for i in range(size)]


def _reductions(jax: Any) -> Bodies:
    lax = jax.lax
    return {
        "psum": Body(lambda v: lax.psum(v, "x"), outs=(None, "y")),
        "psum-two": Body(lambda v: lax.psum(v, ("x", "y")), outs=()),
        "psum-reversed": Body(lambda v: lax.psum(v, ("y", "x")), outs=()),
        "psum-tree": Body(
            lambda v: lax.psum({"a": v, "b": [v * 2, v.sum()]}, "y")["b"][0], outs=("x",)
        ),
        "psum-after-psum": Body(lambda v: lax.psum(lax.psum(v, "x") * 2, "y"), outs=()),
        "psum-constant": Body(lambda v: v * lax.psum(1, "x")),
        "psum-invarying": Body(
            lambda v: lax.psum(v, "y"), ins=("x",), outs=("x",), is_differentiated=False
        ),
        "psum-integers": Body(
            lambda v: lax.psum((v * 10).astype("int32"), "x"),
            outs=(None, "y"),
            is_differentiated=False,
        ),
        "psum-booleans": Body(
            lambda v: lax.psum(v > 0, "x"), outs=(None, "y"), is_differentiated=False
        ),
        "psum-mixed": Body(lambda v: v / lax.psum(v**2 + 1, "y")),
        "pmean": Body(lambda v: lax.pmean(v, ("x", "y")), outs=()),
        "pmax": Body(lambda v: lax.pmax(v, "x"), outs=(None, "y"), is_differentiated=False),
        "pmin": Body(lambda v: lax.pmin(v, ("x", "y")), outs=(), is_differentiated=False),
        "axis-index": Body(lambda v: v * lax.axis_index("x")),
        "axis-index-two": Body(lambda v: v * lax.axis_index(("y", "x"))),
        "axis-size": Body(lambda v: v * lax.axis_size(("x", "y"))),
    }


def _gathers(jax: Any) -> Bodies:
    lax = jax.lax
    return {
        "all-gather": Body(lambda v: lax.all_gather(v, "x", axis=1)[:, 0] * v),
        "all-gather-tiled": Body(lambda v: lax.all_gather(v, "x", tiled=True) * 2),
        "all-gather-two": Body(lambda v: lax.all_gather(v, ("y", "x")).sum(0)),
        "all-gather-invarying": Body(
            lambda v: lax.all_gather(v, "x", to="invarying", tiled=True), outs=(None, "y")
        ),
        "all-gather-reduced": Body(
            lambda v: lax.all_gather(v, "x", to="reduced", tiled=True)[:4] * v, modes=CHECKED
        ),
        "psum-scatter": Body(lambda v: lax.psum_scatter(v, "x"), outs=(("x", "y"),)),
        "psum-scatter-tiled": Body(lambda v: lax.psum_scatter(v, "x", tiled=True)),
        "psum-scatter-dimension": Body(
            lambda v: lax.psum_scatter(v, "y", scatter_dimension=1, tiled=True)
        ),
        "psum-scatter-two": Body(
            lambda v: lax.psum_scatter(v, ("x", "y"), tiled=True), ins=(), outs=(("x", "y"),)
        ),
    }


def _exchanges(jax: Any) -> Bodies:
    lax = jax.lax
    return {
        "ppermute": Body(lambda v: lax.ppermute(v, "x", _ring(4)) * v),
        "ppermute-partial": Body(lambda v: lax.ppermute(v, "x", [(0, 1), (2, 3)])),
        "ppermute-two": Body(lambda v: lax.ppermute(v, ("x", "y"), _ring(8))),
        "ppermute-tree": Body(lambda v: lax.ppermute((v, v * 2), "y", [(0, 1), (1, 0)])[1]),
        "pshuffle": Body(lambda v: lax.pshuffle(v, "x", [2, 0, 3, 1])),
        "pbroadcast": Body(lambda v: lax.pbroadcast(v, "x", 2)),
        "pswapaxes": Body(lambda v: lax.pswapaxes(v, "x", 0)),
        "all-to-all": Body(lambda v: lax.all_to_all(v, "x", 0, 1)),
        "all-to-all-same": Body(lambda v: lax.all_to_all(v, "x", 1, 1)),
        "all-to-all-tiled": Body(lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True)),
        "all-to-all-back": Body(lambda v: lax.all_to_all(v, "y", 1, 0, tiled=True)),
        "all-to-all-two": Body(
            lambda v: lax.all_to_all(v, ("x", "y"), 0, 1, tiled=True), ins=(None, "y")
        ),
        "ragged-all-to-all": Body(
            lambda v: lax.ragged_all_to_all(
                v,
                v * 0,
                jax.numpy.arange(4),
                jax.numpy.ones(4, "int32"),
                jax.numpy.full(4, lax.axis_index("x")),
                jax.numpy.ones(4, "int32"),
                axis_name="x",
            ),
            is_differentiated=False,
        ),
    }


def _casts(jax: Any) -> Bodies:
    lax = jax.lax
    return {
        "pcast-varying": Body(
            lambda v: lax.pcast(v, "y", to="varying") * lax.axis_index("y"), ins=("x",)
        ),
        "pcast-reduced": Body(
            lambda v: lax.pcast(v[:2], "x", to="reduced") * lax.axis_index("x"),
            ins=(None, "y"),
            modes=CHECKED,
        ),
        "pcast-unreduced": Body(
            lambda v: lax.psum(lax.pcast(v, "x", to="unreduced"), "x"),
            outs=(None, "y"),
            modes=CHECKED,
        ),
        "unreduced-sum": Body(
            lambda v: lax.psum(
                lax.pcast(v, "x", to="unreduced") + lax.pcast(v * 2, "x", to="unreduced"), "x"
            ),
            outs=(None, "y"),
            modes=CHECKED,
        ),
        "unreduced-scatter": Body(
            lambda v: lax.psum_scatter(lax.pcast(v, "x", to="unreduced"), "x", tiled=True),
            modes=CHECKED,
        ),
        "varying-twice": Body(lambda v: v + lax.psum(v, "x") + lax.psum(v, "y")),
        "result-varies": Body(
            lambda v: v * 2, outs=(None, "y"), modes=CHECKED, is_differentiated=False
        ),
        "cast-of-varying": Body(
            lambda v: lax.pcast(v, "x", to="varying"), modes=CHECKED, is_differentiated=False
        ),
        "cast-to-invarying": Body(
            lambda v: lax.pcast(v, "x", to="invarying"), modes=CHECKED, is_differentiated=False
        ),
    }


def _grouped(jax: Any) -> Bodies:
    """Collectives of groups, which types cannot tell."""
    lax, pairs = jax.lax, [[0, 2], [3, 1]]
    return {
        "psum-groups": Body(lambda v: lax.psum(v, "x", axis_index_groups=pairs), modes=UNCHECKED),
        "psum-groups-checked": Body(
            lambda v: lax.psum(v, "x", axis_index_groups=pairs),
            modes=CHECKED,
            is_differentiated=False,
        ),
        "pmax-groups": Body(
            lambda v: lax.pmax(v, "x", axis_index_groups=pairs),
            modes=UNCHECKED,
            is_differentiated=False,
        ),
        "all-gather-groups": Body(
            lambda v: lax.all_gather(v, "x", axis_index_groups=pairs, tiled=True), modes=UNCHECKED
        ),
        "psum-scatter-groups": Body(
            lambda v: lax.psum_scatter(v, "x", axis_index_groups=pairs, tiled=True), modes=UNCHECKED
        ),
        "all-to-all-groups": Body(
            lambda v: lax.all_to_all(v, "x", 0, 1, axis_index_groups=pairs, tiled=True),
            modes=UNCHECKED,
        ),
    }


def _control_flow(jax: Any) -> Bodies:
    lax, jnp = jax.lax, jax.numpy

    def ring(v: Any) -> Any:
        def step(carry: Any, i: Any) -> Any:
            return lax.ppermute(carry, "x", _ring(4)), carry.sum() * i

        last, sums = lax.scan(step, v, jnp.arange(3.0))
        return last * sums.sum()

    def summed(v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: c + lax.psum(c, "y") / 2, lax.psum(v, "y"))

    def chosen(v: Any) -> Any:
        total = lax.psum(v.sum(), ("x", "y"))
        return lax.cond(total > 0, lambda u: lax.all_gather(u, "x").sum(0), lambda u: u * 2, v)

    def until(v: Any) -> Any:
        return lax.while_loop(lambda c: lax.psum(c.sum(), ("x", "y")) < 9, lambda c: c + 1, v)

    return {
        "scan": Body(ring),
        "fori": Body(summed, outs=("x",), is_differentiated=False),
        "cond": Body(chosen),
        "while": Body(until, is_differentiated=False),
        "scan-carry-varies": Body(
            lambda v: lax.scan(lambda c, u: (c + u, u), jnp.zeros(v.shape[1:]), v)[1],
            is_differentiated=False,
        ),
    }


def _transformed(jax: Any) -> Bodies:
    """Bodies that transform functions of blocks."""
    lax, jnp = jax.lax, jax.numpy

    def layer(v: Any) -> Any:
        return jnp.tanh(lax.all_gather(v, "x", tiled=True) @ jnp.ones((4, 4))).sum(0) * v

    @jax.custom_vjp
    def halved(v: Any) -> Any:
        return lax.psum(v, "y")

    halved.defvjp(lambda v: (lax.psum(v, "y"), v), lambda v, ct: (0 * v + ct / 2,))
    onward = _ring(4)
    return {
        "checkpoint": Body(jax.checkpoint(layer)),
        "jit": Body(jax.jit(lambda v: lax.psum(v, "x") + v)),
        "custom-vjp": Body(halved, outs=("x",)),
        "grad-inside": Body(jax.grad(lambda u: lax.psum((u**3).sum(), ("x", "y")))),
        "grad-inside-shared": Body(
            jax.grad(lambda u: (u * lax.axis_index("x")).sum()),
            ins=(None, "y"),
            outs=(None, "y"),
            modes=CHECKED,
            is_differentiated=False,
        ),
        "jvp-inside": Body(lambda v: jax.jvp(lambda u: lax.psum(u**2, "x") * u, (v,), (v,))[1]),
        "vmap-inside": Body(jax.vmap(lambda u: lax.ppermute(u, "x", onward) + lax.psum(u, "y"))),
        "vmap-product": Body(
            jax.vmap(lambda u: lax.psum(u, ("x", "rows")), axis_name="rows"),
            outs=(None, "y"),
            is_differentiated=False,
        ),
    }


def _partial(jax: Any) -> Bodies:
    """Bodies that are written per device of one axis; the compiler splits over the other."""
    lax, only = jax.lax, frozenset({"x"})
    return {
        "partial-local": Body(lambda v: v * 2, ins=("x",), outs=("x",), axes=only),
        "partial-psum": Body(lambda v: lax.psum(v, "x"), ins=("x",), outs=(), axes=only),
        "partial-gather": Body(
            lambda v: lax.all_gather(v, "x", tiled=True), ins=("x",), outs=("x",), axes=only
        ),
        "partial-permute": Body(
            lambda v: lax.ppermute(v, "x", _ring(4)), ins=("x",), outs=("x",), axes=only
        ),
        "partial-index": Body(
            lambda v: v * lax.axis_index("x"), ins=("x",), outs=("x",), axes=only
        ),
        "partial-auto-name": Body(
            lambda v: lax.psum(v, "y"),
            ins=("x",),
            outs=("x",),
            axes=only,
            modes=CHECKED,
            is_differentiated=False,
        ),
    }


def _around(jax: Any, place: Place) -> Programs:
    """What is around a `shard_map`."""
    lax, spec = jax.lax, place.P
    x = _floats(16, 8)
    rows = spec("x", "y")

    def normalized(v: Any) -> Any:
        return v / lax.psum(v**2 + 1, "x")

    mapped = jax.shard_map(normalized, mesh=place.mesh, in_specs=rows, out_specs=rows)

    @jax.shard_map(mesh=place.mesh, in_specs=spec("x"), out_specs=spec("x"), axis_names={"x"})
    def nested(v: Any) -> Any:
        inner = jax.shard_map(
            lambda u: lax.psum(u, "y") + u * 0, in_specs=spec("y"), out_specs=spec("y")
        )
        return inner(lax.psum(v, "x") + v)

    by_batch = jax.shard_map(
        normalized, mesh=place.mesh, in_specs=spec("x"), out_specs=spec("x"), check_vma=True
    )
    batch = _floats(4, 16, 8)
    return {
        "around-scan": PerDevice(
            lambda x: lax.scan(lambda c, _: (mapped(c), c.sum()), x, None, 3), (x,)
        ),
        "around-vmap": PerDevice(jax.vmap(mapped), (batch,)),
        "around-vmap-grad": PerDevice(
            jax.grad(lambda b: jax.vmap(mapped)(b).sum()), (batch,), shows_borders=False
        ),
        "around-vmap-axis": PerDevice(jax.vmap(by_batch, spmd_axis_name="y"), (batch,)),
        "around-checkpoint": PerDevice(
            jax.grad(lambda x: jax.checkpoint(mapped)(jax.numpy.sin(x)).sum()),
            (x,),
            shows_borders=False,
        ),
        "around-hessian": PerDevice(
            jax.jacfwd(jax.grad(lambda a: mapped(a * x).sum())),
            (np.float32(0.5),),
            shows_borders=False,
        ),
        "around-linearize": PerDevice(
            lambda x: jax.linearize(mapped, x)[1](x), (x,), shows_borders=False
        ),
        "nested": PerDevice(nested, (x,)),
        "unequal-blocks": PerDevice(mapped, (x[:15],)),
        "closed-over": PerDevice(
            lambda x: jax.shard_map(
                lambda v: v + lax.psum(x.sum(), "x"), mesh=place.mesh, in_specs=rows, out_specs=rows
            )(x * 2),
            (x,),
        ),
    }


def _pmapped(jax: Any) -> Programs:
    lax, x = jax.lax, _floats(8, 8, 4)
    pairs = [[0, 1, 2, 3], [7, 6, 5, 4]]

    def program(function: Any, *args: Any, **options: Any) -> PerDevice:
        return PerDevice(jax.pmap(function, axis_name="i", **options), args or (x,), True, False)

    @jax.custom_jvp
    def shared(v: Any) -> Any:
        return v / lax.psum(v**2 + 1, "i")

    shared.defjvps(lambda t, out, v: t * out)
    programs = {
        "pmap-local": program(lambda v: v * 2),
        "pmap-psum": program(lambda v: v / lax.psum(v, "i")),
        "pmap-pmean-pmax": program(lambda v: (lax.pmean(v, "i"), lax.pmax(v, "i"))),
        "pmap-all-gather": program(lambda v: lax.all_gather(v[:2], "i", axis=1)),
        "pmap-psum-scatter": program(lambda v: lax.psum_scatter(v, "i")),
        "pmap-ppermute": program(lambda v: lax.ppermute(v, "i", _ring(8))),
        "pmap-all-to-all": program(lambda v: lax.all_to_all(v, "i", 0, 1)),
        "pmap-index": program(lambda v: v * lax.axis_index("i")),
        "pmap-groups": program(lambda v: lax.psum(v, "i", axis_index_groups=pairs)),
        "pmap-axes": program(lambda v, w: v @ w, x, _floats(4, 3), in_axes=(1, None), out_axes=1),
        "pmap-static": program(
            lambda v, n: v * n, x, 3, static_broadcasted_argnums=1, in_axes=(0, None)
        ),
        "pmap-grad": program(jax.grad(lambda v: (v * lax.psum(v, "i")).sum())),
        "pmap-custom": program(jax.grad(lambda v: shared(v).sum())),
        "pmap-vmap": program(jax.vmap(lambda u: lax.psum(u, "i") + u)),
        "pmap-scan": program(
            lambda v: lax.scan(lambda c, u: (lax.ppermute(c + u, "i", _ring(8)), u), v[0], v)
        ),
    }
    gradient = jax.grad(
        lambda x: (jax.pmap(lambda v: v / lax.psum(v**2 + 1, "i"), "i")(x) ** 2).sum()
    )
    return {**programs, "pmap-grad-around": PerDevice(gradient, (x,), shows_borders=False)}


def _batched(jax: Any) -> Programs:
    """Collectives over the examples of a batch."""
    lax, x = jax.lax, _floats(6, 6, 2)

    def program(function: Callable[[Any], Any]) -> PerDevice:
        return PerDevice(jax.vmap(function, axis_name="i"), (x,))

    return {
        "vmap-psum": program(lambda v: v - lax.pmean(v, "i")),
        "vmap-pmax": program(lambda v: lax.pmax(v, "i") - lax.pmin(v, "i")),
        "vmap-gather": program(lambda v: lax.all_gather(v, "i", axis=1)),
        "vmap-gather-tiled": program(lambda v: lax.all_gather(v, "i", tiled=True)),
        "vmap-scatter": program(lambda v: lax.psum_scatter(v, "i")),
        "vmap-permute": program(lambda v: lax.ppermute(v, "i", _ring(6))),
        "vmap-exchange": program(lambda v: lax.all_to_all(v, "i", 0, 1)),
        "vmap-index": program(lambda v: v * lax.axis_index("i")),
        "vmap-grad": PerDevice(
            jax.grad(
                lambda x: (jax.vmap(lambda v: v * lax.psum(v, "i"), axis_name="i")(x) ** 2).sum()
            ),
            (x,),
        ),
    }
