"""Collectives that only start, and whose results are asked for later.

Each starting form takes the arguments of the collective and returns a `Todo`; what is computed
before `done()` need not wait for the other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from minijax.core import axes as core_axes
from minijax.core import printing, tree, tree_registry, vma
from minijax.core.aval import AbstractTodo
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.value_placement import ManualAxisType
from minijax.interpreters import casts
from minijax.lax.collectives import arguments, exchanges, gathers, permutations, reductions
from minijax.lax.collectives.arguments import Application, AxisName, PermutationLike
from minijax.lax.families import Avals
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.sharding import rules


class Start(Primitive):
    """Starts a collective.  Of its rules it has those for types: no derivative, no batch.

    Args:
        base: the collective.
        done: the operation that waits for the result.
        prepare: what is built before the start, `(ctx, x, **params) -> x`.
        exchange: the one operation that is started, `(ctx, x, **params) -> value`.
        starts: whether it is started, `(ctx, **params)`; otherwise it is done at once.
    """

    has_effects: ClassVar[bool] = True

    def __init__(
        self,
        base: Any,
        done: Done,
        *,
        prepare: Callable[..., Any] = lambda ctx, x, **params: x,
        exchange: Callable[..., Any] | None = None,
        starts: Callable[..., bool] = lambda ctx, **params: True,
    ) -> None:
        super().__init__(f"{base.name}_start")
        self.base = base
        self.done = done
        self.prepare = prepare
        self.exchange = exchange or base.lower
        self.starts = starts
        STARTS[base] = self

    def abstract_eval(self, x: Any, **params: Any) -> AbstractTodo:
        return AbstractTodo(self.base.abstract_eval(x, **params))

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return self.base.effects(*avals, **params)

    def shard(self, avals: Avals, outs: Sequence[AbstractTodo], **params: Any) -> Any:
        return self.base.shard(avals, [out.inner_aval for out in outs], **params)

    def lower(self, ctx: LoweringContext, x: Value, **params: Any) -> Any:
        (todo,) = ctx.avals_out
        if not todo.inner_aval.size or not self.starts(ctx, **params):
            ctx.avals_out = [todo.inner_aval]
            return self.base.lower(ctx, x, **params)
        x = self.prepare(ctx, x, **params)

        def body(inner: LoweringContext, operand: object) -> list[Any]:
            inner.avals_out = [todo.inner_aval]
            return [self.exchange(inner, operand, **params)]

        future = [stablehlo.type_of(todo)]
        return ctx.ops("stablehlo.async_start", [x], {}, future, [([x.type], body)])[0]


rules.constrains_results.set(False, Start)


@printing.shows.rule(Start)
def _shown_params_of_start(primitive: Start, params: Any) -> dict[str, Any]:
    return printing.shown_params(primitive.base, params)


@vma.vary.rule(Start)
def _vary_of_start(
    primitive: Start, avals: Avals, outs: Sequence[AbstractTodo], **params: Any
) -> ManualAxisType:
    return vma.vary.of(primitive.base)(avals, [out.inner_aval for out in outs], **params)


core_axes.communicates.set(True, Start)
core_axes.axis_params.derive(Start)(lambda start: core_axes.axis_params.of(start.base))
core_axes.makes_equal.derive(Start)(lambda start: core_axes.makes_equal.of(start.base))
core_axes.waits_for_all.derive(Start)(lambda start: core_axes.waits_for_all.of(start.base))


class Done(Primitive):
    """Waits for the result of a collective that has started.  No derivative, no batch."""

    def abstract_eval(self, x: object) -> Any:
        if not isinstance(x, AbstractTodo):
            error(
                TypeError,
                f"lax.{self.name}",
                "nothing has started here that could be done.",
                got=str(x),
                expected="what a collective of varying values has started; sums of constants "
                "and gathers to invarying values do not start",
                fix="the synchronous form",
            )
        return x.inner_aval

    def shard(self, avals: Avals, outs: Sequence[AbstractTodo]) -> Any:
        return rules.spec_of(outs[0])

    def lower(self, ctx: LoweringContext, x: Value) -> Any:
        if x.type == stablehlo.type_of(ctx.avals_out[0]):
            # It was done at once.
            return x
        return ctx.op("stablehlo.async_done", [x])


rules.constrains_results.set(False, Done)


@vma.vary.rule(Done)
def _vary_of_done(primitive: Done, avals: Avals, outs: Avals) -> ManualAxisType:
    return vma.of(avals[0])


STARTS: dict[Any, Start] = {}
"""For each collective that can be started, the operation that does."""

all_gather_done_p = Done("all_gather_done")
psum_done_p = Done("psum_done")
reduce_scatter_done_p = Done("reduce_scatter_done")
all_to_all_done_p = Done("all_to_all_done")
pbroadcast_done_p = Done("pbroadcast_done")
ppermute_done_p = Done("ppermute_done")


def _start_of_gather(base: gathers.Gather) -> Start:
    return Start(base, all_gather_done_p, prepare=base.widened, exchange=base.exchange)


def _refuse_untiled(ctx: LoweringContext, x: Value, *, tiled: bool, **_: Any) -> Any:
    if not tiled:
        problem = "is implemented for tiled=True only."
        fix = "tiled=True, and reshape the result"
        error(NotImplementedError, "lax.psum_scatter_start", problem, fix=fix)
    return x


def _is_started_exchange(
    ctx: LoweringContext, *, split_axis: int, concat_axis: int, axis_size: int, **_: Any
) -> bool:
    # XLA:CPU refuses to start exchanges that change the shape.
    return axis_size > 1 and (split_axis == concat_axis or ctx.platform != "cpu")


def _refuse_without_gpu(ctx: LoweringContext, x: Value, **_: Any) -> Any:
    if ctx.platform not in arguments.GPUS:
        problem = "is implemented for GPUs only."
        got = f"a program for {ctx.platform}"
        error(NotImplementedError, "lax.pbroadcast_start", problem, got=got, fix="lax.pbroadcast")
    return x


all_gather_start_p = _start_of_gather(gathers.all_gather_p)
all_gather_reduced_start_p = _start_of_gather(gathers.all_gather_reduced_p)
psum_start_p = Start(
    reductions.psum_p,
    psum_done_p,
    prepare=reductions.psum_p.reduced,
    exchange=reductions.psum_p.exchange,
)
psum_invariant_start_p = Start(casts.psum_invariant_p, psum_done_p)
unreduced_psum_start_p = Start(casts.unreduced_psum_p, psum_done_p)
reduce_scatter_start_p = Start(
    gathers.reduce_scatter_p, reduce_scatter_done_p, prepare=_refuse_untiled
)
unreduced_reduce_scatter_start_p = Start(
    gathers.unreduced_reduce_scatter_p, reduce_scatter_done_p, prepare=_refuse_untiled
)
all_to_all_start_p = Start(exchanges.all_to_all_p, all_to_all_done_p, starts=_is_started_exchange)
pbroadcast_start_p = Start(
    permutations.pbroadcast_p, pbroadcast_done_p, prepare=_refuse_without_gpu
)
ppermute_start_p = Start(permutations.ppermute_p, ppermute_done_p)


@dataclass(frozen=True)
class _Completion:
    """How the results of collectives are got: by which operation, and what is left to do."""

    done: Done
    squeezed: tuple[tuple[int, ...], ...]

    def __call__(self, x: object) -> Any:
        leaves, treedef = tree.flatten(x)
        outs = [
            arguments.without_dims(self.done.bind(leaf), dims)
            for leaf, dims in zip(leaves, self.squeezed, strict=True)
        ]
        return tree.unflatten(treedef, outs)


class Todo:
    """Collectives that have started.

    Source: mirrors what the starting forms of JAX's collectives return, `Future` since 0.10.

    Attributes:
        x: a tree of values of type `AbstractTodo`.
        done_fun: gives the results for `x`.

    Example:
        >>> def total(x):
        ...     started = lax.psum_start(x, "x")
        ...     busy = x * x
        ...     return started.done() + busy
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        Array([28, 29, 32, 37, 44, 53, 64, 77], dtype=int32)
    """

    __slots__ = ("done_fun", "x")

    def __init__(self, x: Any, done_fun: Callable[[Any], Any]) -> None:
        self.x = x
        self.done_fun = done_fun

    def done(self) -> Any:
        """The results; waits for them.

        Raises:
            TypeError: nothing has started, because there is nothing to wait for.
        """
        return self.done_fun(self.x)

    def __repr__(self) -> str:
        return f"Todo({self.x})"


Future = Todo

tree_registry.register_pytree_node(
    Todo, lambda todo: ((todo.x,), todo.done_fun), lambda done, xs: Todo(xs[0], done)
)


def _started(
    function: Callable[..., Any], done: Done, x: object, *args: Any, **options: Any
) -> Todo:
    """What a public function does, only started."""
    leaves, treedef = tree.flatten(arguments.applications_of(function)(x, *args, **options))
    begun = []
    squeezed: list[tuple[int, ...]] = []
    for leaf in leaves:
        if not isinstance(leaf, Application):
            begun.append(leaf)
        elif leaf.primitive in STARTS:
            begun.append(STARTS[leaf.primitive].bind(leaf.operand, **leaf.params))
        else:
            begun.append(leaf.primitive.bind(leaf.operand, **leaf.params))
        squeezed.append(leaf.squeezed if isinstance(leaf, Application) else ())
    return Todo(tree.unflatten(treedef, begun), _Completion(done, tuple(squeezed)))


def all_gather_start(x: object, axis_name: AxisName, **options: Any) -> Todo:
    """Starts `all_gather`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's all_gather_start (0.10).

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> gather = lambda x: lax.all_gather_start(x, "x", tiled=True).done()[::-1][:1]
        >>> jax.shard_map(gather, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        Array([7, 7, 7, 7, 7, 7, 7, 7], dtype=int32)
    """
    return _started(gathers.all_gather, all_gather_done_p, x, axis_name, **options)


def psum_start(x: object, axis_name: AxisName, **options: Any) -> Todo:
    """Starts `psum`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's psum_start (0.10).

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> total = lambda x: lax.psum_start(x, "x").done()
        >>> jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.arange(8))
        Array([28], dtype=int32)
    """
    return _started(reductions.psum, psum_done_p, x, axis_name, **options)


def psum_scatter_start(x: object, axis_name: AxisName, **options: Any) -> Todo:
    """Starts `psum_scatter`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's psum_scatter_start (0.10).

    Raises:
        NotImplementedError: when the program is lowered, if not `tiled`.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> share = lambda x: lax.psum_scatter_start(x, "x", tiled=True).done()
        >>> jax.shard_map(share, mesh=mesh, in_specs=P(None), out_specs=P("x"))(jnp.arange(8))
        Array([ 0,  8, 16, 24, 32, 40, 48, 56], dtype=int32)
    """
    return _started(gathers.psum_scatter, reduce_scatter_done_p, x, axis_name, **options)


def all_to_all_start(
    x: object, axis_name: AxisName, split_axis: int, concat_axis: int, **options: Any
) -> Todo:
    """Starts `all_to_all`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's all_to_all_start (0.10).

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> turn = lambda x: lax.all_to_all_start(x, "x", 1, 0, tiled=True).done()
        >>> x = jnp.arange(64).reshape(8, 8)
        >>> y = jax.shard_map(turn, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x"))(x)
        >>> bool((x == y).all()), jax.typeof(x), jax.typeof(y)
        (True, ShapedArray(int32[8,8]), ShapedArray(int32[8,8@x]))
    """
    axes = (split_axis, concat_axis)
    return _started(exchanges.all_to_all, all_to_all_done_p, x, axis_name, *axes, **options)


def pbroadcast_start(x: object, axis_name: AxisName, source: int) -> Todo:
    """Starts `pbroadcast`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's pbroadcast_start (0.10).

    Raises:
        NotImplementedError: when the program is lowered for another platform than a GPU.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> send = lambda x: lax.pbroadcast_start(x, "x", 0).done()
        >>> f = jax.shard_map(send, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        >>> jax.eval_shape(f, jnp.ones(8)).shape
        (8,)
    """
    return _started(permutations.pbroadcast, pbroadcast_done_p, x, axis_name, source)


def ppermute_start(x: object, axis_name: AxisName, perm: PermutationLike) -> Todo:
    """Starts `ppermute`, with the same arguments; `.done()` gives its result.

    Source: mirrors jax.lax's ppermute_start (0.10).

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> ring = [(i, (i + 1) % 8) for i in range(8)]
        >>> pass_on = lambda x: lax.ppermute_start(x, "x", ring).done()
        >>> jax.shard_map(pass_on, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        Array([7, 0, 1, 2, 3, 4, 5, 6], dtype=int32)
    """
    return _started(permutations.ppermute, ppermute_done_p, x, axis_name, perm)
