"""`custom_partitioning`: an operation of which the user says how devices share it.

Input: a function, how its dimensions may be cut (`sharding_rules.py`), and a Python function that
is told where Shardy has put operands and results.  Output: a function that is one custom call in
the module.  While XLA compiles, its partitioner asks for the program of one device; it is traced
and lowered then, as the body of `shard_map` is.
"""

from __future__ import annotations

import inspect
import io
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from jaxlib import xla_client

from minijax.runtime.array import Array
from minijax.core import source, tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, BatchDims
from minijax.core.primitive import Batched, Primitive
from minijax.experimental.custom_partitioning.sharding_rules import SdyShardingRule, rule_of
from minijax.interpreters import staging
from minijax.lax import callbacks
from minijax.lowering import module, stablehlo
from minijax.lowering.call_plan import Partitioned
from minijax.lowering.module import Lowering
from minijax.lowering.device_axes import PartitionAxes
from minijax.sharding import hlo, rules
from minijax.sharding.named import GSPMDSharding, NamedSharding, named
from minijax.transforms.jit.stages import ShapeDtypeStruct
from minijax.transforms.jit.tracing import make_jaxpr
from minijax.transforms.per_device.shard_map import shard_map

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

_NAME = "custom_partitioning"
_TARGET = "minijax_custom_partitioning"
_numbers = itertools.count()
_process = os.urandom(8).hex()
_live: Any = Cache(
    "partitioned calls",
    "calls in modules that XLA's partitioner asks about",
    key="a number that no other process has",
    owner="module",
    counted=False,
).interned()


class Partitioner:
    """What a user has said of one operation; a parameter of its equations.

    Attributes:
        partition: gives the program of one device.
        infer: gives the sharding of results for that of operands.
        propagate: gives the sharding of results for one that users of the result want.
        rule: Shardy's rule, or a function of mesh and types that gives one.
        decodes: whether users are told shardings on the mesh, or in XLA's terms.
    """

    __slots__ = ("decodes", "facts", "infer", "partition", "propagate", "rule")

    def __init__(self, partition: Any, infer: Any, propagate: Any, rule: Any, **facts: Any) -> None:
        self.partition = partition
        self.infer = infer
        self.propagate = propagate
        self.decodes = facts.pop("decodes")
        self.facts = facts
        self.rule = rule if rule is None or callable(rule) else self.made(rule)

    def made(self, rule: Any) -> SdyShardingRule:
        """A rule that may be a text."""
        return rule if isinstance(rule, SdyShardingRule) else rule_of(rule, **self.facts)

    def __repr__(self) -> str:
        return f"Partitioner({getattr(self.partition, '__name__', self.partition)})"


class _Call:
    """One call in a module, which XLA's partitioner asks about; lives as long as the module.

    Attributes:
        now: the compilation that is under way, which knows the mesh.
        lock: held meanwhile.
    """

    def __init__(self, params: dict[str, Any], ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.params = params
        self.ins, self.outs = list(ins), list(outs)
        self.key = f"{_process}-{next(_numbers)}"
        self.now: Any = None
        self.lock = threading.RLock()
        _live[self.key] = self

    @property
    def mesh(self) -> Any:
        """The mesh of the program that is being compiled."""
        found = self.now.plan.mesh
        if found is None:
            problem = "the program runs on several devices, and nobody says on which mesh."
            error(ValueError, _NAME, problem, fix="NamedSharding for the arguments, or set_mesh")
        return found

    def described(self, avals: Sequence[Any], tilings: Sequence[Any] | None, structure: Any) -> Any:
        """Shapes, dtypes and shardings, as users are told them."""
        found = []
        for aval, tiling in zip(avals, tilings or [None] * len(avals), strict=True):
            where: Any = None
            if tiling is not None:
                spec = hlo.spec_of(tiling, self.mesh, aval.ndim)
                if spec is None or not self.params["partitioner"].decodes:
                    where = GSPMDSharding(self.mesh.flat_devices, tiling)
                else:
                    where = named(self.mesh, spec.padded(aval.ndim))
            found.append(ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where))
        return tree.unflatten(structure, found)

    def tilings(self, given: Any, avals: Sequence[Any], what: str) -> list[Any]:
        """Shardings that a user has given for some values, as flat list."""
        leaves = tree.leaves(given, is_leaf=tree.is_none)
        if len(leaves) != len(avals) or not all(hasattr(x, "to_hlo") for x in leaves):
            problem = f"{what} are no shardings, one for each value."
            expected = f"{len(avals)} shardings"
            error(ValueError, f"{_NAME}.def_partition", problem, got=repr(given), expected=expected)
        return leaves

    def partition(self, in_tilings: Sequence[Any], out_tilings: Sequence[Any]) -> Any:
        """The program of one device, and how its operands and results are cut."""
        params, name = self.params, f"{_NAME}.def_partition"
        ins = self.described(self.ins, in_tilings, params["in_tree"])
        outs = self.described(self.outs, out_tilings, params["out_tree"])
        answer = params["partitioner"].partition(*params["static_args"], self.mesh, ins, outs)
        if not isinstance(answer, tuple) or len(answer) != 4:
            problem = "partition must return four things."
            expected = "(mesh, function of one device, shardings of results, of arguments)"
            error(TypeError, name, problem, got=repr(answer), expected=expected)
        mesh, function, result_shardings, arg_shardings = answer
        in_places = self.tilings(arg_shardings, self.ins, "the shardings of arguments")
        out_places = self.tilings(result_shardings, self.outs, "the shardings of results")
        for place in (*in_places, *out_places):
            if not isinstance(place, NamedSharding):
                problem = "shardings of pieces must be on the mesh."
                error(TypeError, name, problem, got=repr(place), expected="a NamedSharding")
        closed = self._of_one_device(mesh, function, in_places, out_places)
        lowering = Lowering(
            _NAME, self.now.plan.devices[0].platform, Partitioned(mesh.size, (), ())
        )
        axes = PartitionAxes(mesh.abstract_mesh, frozenset(mesh.axis_names))
        with lowering.inside(axes), stablehlo.context(), lowering.unknown:
            lowering.function("main", closed.jaxpr, closed.consts, public=True)
        with io.BytesIO() as stream:
            lowering.module.operation.write_bytecode(stream)
            program = stream.getvalue()
        return program, _hlo(in_places, self.ins), _hlo(out_places, self.outs)

    def _of_one_device(
        self, mesh: Any, function: Any, ins: Sequence[Any], outs: Sequence[Any]
    ) -> ClosedJaxpr:
        """The program that one device runs on its pieces."""
        in_tree, name = self.params["in_tree"], f"{_NAME}.def_partition"
        sizes: list[Any] = []

        def flat(*pieces: Any) -> tuple[Any, ...]:
            results = tuple(tree.leaves(function(*tree.unflatten(in_tree, pieces))))
            sizes.extend(map(aval_of, results))
            return results

        whole_avals = [ShapeDtypeStruct(a.shape, a.dtype) for a in self.ins]
        specs = tuple(s.spec for s in ins), tuple(s.spec for s in outs)
        mapped = shard_map(flat, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)
        try:
            eqn = make_jaxpr(mapped)(*whole_avals).jaxpr.eqns[0]
        finally:
            expected = [
                (s.shard_shape(a.shape), a.dtype) for s, a in zip(outs, self.outs, strict=True)
            ]
            if sizes and [(a.shape, a.dtype) for a in sizes] != expected:
                problem = "the function of one device returns other pieces than its results have."
                texts = [ShapedArray(*facts).str_short() for facts in expected]
                got = ", ".join(a.str_short() for a in sizes)
                error(ValueError, name, problem, got=got, expected=", ".join(texts), cause=None)
        found: ClosedJaxpr = eqn.params["jaxpr"]
        return found

    def inferred(self, in_tilings: Sequence[Any]) -> Any:
        """How results are cut for operands that are cut so; asked by the older partitioner."""
        params = self.params
        ins = self.described(self.ins, in_tilings, params["in_tree"])
        outs = self.described(self.outs, None, params["out_tree"])
        infer = params["partitioner"].infer
        if infer is None:
            problem = "the older partitioner needs infer_sharding_from_operands."
            fix = "give it, or config.update('use_shardy_partitioner', True) and a sharding_rule"
            error(NotImplementedError, f"{_NAME}.def_partition", problem, fix=fix)
        given = infer(*params["static_args"], self.mesh, ins, outs)
        return _hlo(self.tilings(given, self.outs, "the inferred shardings"), self.outs)

    def propagated(self, out_tilings: Sequence[Any]) -> Any:
        """How results are cut whose users want them so; asked by the older partitioner."""
        params = self.params
        outs = self.described(self.outs, out_tilings, params["out_tree"])
        given = params["partitioner"].propagate(*params["static_args"], self.mesh, outs)
        return _hlo(self.tilings(given, self.outs, "the propagated shardings"), self.outs)

    def answer(self, ask: Callable[[], Any], *, may_raise: bool) -> Any:
        """What a user's function gives; what it raises is kept for who compiles.

        XLA ends the process where the question of how to cut results raises: they are whole then.
        """
        try:
            return ask()
        except BaseException as caught:
            self.now.failure = self.now.failure or caught
            if may_raise:
                raise
            return [hlo.REPLICATED] * len(self.outs)


def _hlo(places: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    return [s.to_hlo(a.ndim) for s, a in zip(places, avals, strict=True)]


def _elements(sharding: Any, call: _Call) -> list[Any]:
    """The tilings of all results."""
    parts = sharding.tuple_elements()
    return list(parts) if parts else [sharding] * len(call.outs)


def _together(tilings: list[Any], shape: Any) -> Any:
    """The tiling of all results at once."""
    return xla_client.HloSharding.tuple_sharding(shape, tilings) if shape.is_tuple() else tilings[0]


def _call_of(key: Any) -> _Call:
    return _live[key.decode() if isinstance(key, bytes) else key]


def _partition(
    _: Any, in_tilings: Sequence[Any], shape: Any, out_tiling: Any, key: Any
) -> tuple[Any, Any, Any]:
    call = _call_of(key)
    outs = _elements(out_tiling, call)
    program, ins, found = call.answer(lambda: call.partition(in_tilings, outs), may_raise=True)
    return program, ins, _together(found, shape)


def _infer(_: Any, in_tilings: Sequence[Any], shape: Any, key: Any) -> Any:
    call = _call_of(key)
    return _together(call.answer(lambda: call.inferred(in_tilings), may_raise=False), shape)


def _propagate(out_tiling: Any, shape: Any, key: Any) -> Any:
    call = _call_of(key)
    if call.params["partitioner"].propagate is None:
        return out_tiling
    outs = _elements(out_tiling, call)
    return _together(call.answer(lambda: call.propagated(outs), may_raise=False), shape)


xla_client.register_custom_call_partitioner(_TARGET, _propagate, _partition, _infer, True)


class CustomPartitioning(Primitive):
    """Computes `call`, which devices share as `partitioner` says.

    Shapes: those of `call`.
    """

    name = "custom_partitioning"
    multiple_results = True

    def abstract_eval(self, *avals: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
        return list(call.out_avals)

    def shard(
        self, avals: Avals, outs: Avals, *, call: ClosedJaxpr, **_: Any
    ) -> list[PartitionSpec]:
        return [rules.spec_of(aval) for aval in call.out_avals]

    def impl(self, *args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
        return list(staging.eval_closed_jaxpr(call, *args))

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        call, where = params["call"], ctx.module.partitioning
        if where.partitions == 1:
            return module.lower_jaxpr(ctx, call.jaxpr, call.consts, values)
        if ctx.module.device_axes.names:
            problem = "cannot be used where some axes are manual and others are not."
            error(NotImplementedError, _NAME, problem, fix="shard_map over all axes of the mesh")
        made = _Call(params, ctx.avals_in, ctx.avals_out)
        cast("list[Any]", ctx.module.inspected).append(made)
        attributes = {
            "call_target_name": ctx.string(_TARGET),
            "api_version": stablehlo.integer(2, 32),
            "backend_config": ctx.string(made.key),
        }
        if where.with_shardy:
            rule = self._rule(ctx, params["partitioner"], values)
            if rule is not None:
                shapes = [[a.shape for a in avals] for avals in (ctx.avals_in, ctx.avals_out)]
                attributes["sdy.sharding_rule"] = ctx.attribute(rule.attribute(*shapes))
        types = list(map(ctx.type_of, ctx.avals_out))
        return list(ctx.operation("stablehlo.custom_call", values, attributes, types).results)

    @staticmethod
    def _rule(ctx: LoweringContext, said: Partitioner, values: Any) -> SdyShardingRule | None:
        if said.rule is None or isinstance(said.rule, SdyShardingRule):
            return said.rule
        types = [x.type for x in values], list(map(ctx.type_of, ctx.avals_out))
        return said.made(said.rule(None, *types))

    def jvp(self, *_: Any, **__: Any) -> NoReturn:
        problem = "nothing is known of the derivative of a function with a partitioning of its own."
        fix = "custom_jvp or custom_vjp around it, whose rules may call such functions, too"
        error(NotImplementedError, _NAME, problem, fix=fix)

    transpose = jvp

    def batch(self, size: int, args: Sequence[Array], dims: BatchDims, **params: Any) -> Batched:
        outs, out_dims = callbacks.call_for_each(
            "sequential", lambda *xs: self.bind(*xs, **params), args, dims, size
        )
        return outs, list(out_dims)


custom_partitioning_p = CustomPartitioning()


@source.boundaries("__init__", "__call__", "def_partition")
class custom_partitioning:  # noqa: N801  JAX's name
    """A function with a partitioning of its own: XLA asks the user how devices share it.

    Args:
        fun: a function of arrays.
        static_argnums: positions of arguments that are part of the program by value.

    Source:     mirrors jax.experimental.custom_partitioning.custom_partitioning (0.10).

    Example:
        >>> from minijax.experimental.custom_partitioning import custom_partitioning
        >>> @custom_partitioning
        ... def double(x):
        ...     return 2 * x
        >>> def partition(mesh, arg_shapes, result_shape):
        ...     where = arg_shapes[0].sharding
        ...     return mesh, lambda x: 2 * x, where, (where,)
        >>> double.def_partition(partition, sharding_rule="i -> i")
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> jax.jit(double)(jax.device_put(jnp.arange(8), spread)).sharding.spec
        P('x',)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        self.fun = fun
        self.static_argnums = tuple(static_argnums)
        self.partitioner: Partitioner | None = None
        self.__name__ = getattr(fun, "__name__", _NAME)
        self.__doc__ = fun.__doc__ or self.__doc__

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Says how devices share the function; returns `partition`.

        Args:
            partition: of static arguments, the mesh, and shapes with shardings of arguments and
                result, gives the mesh, the function of one device, and the shardings of the result
                and, as a tuple, of the arguments.
            infer_sharding_from_operands: for the partitioner before Shardy: of the same, gives the
                sharding of the result.
            propagate_user_sharding: for that one: the sharding of the result for a wanted one.
            decode_shardings: whether shardings are on the mesh; else they are in XLA's terms.
            sharding_rule: for Shardy: a text such as `"i j, j k -> i k"`, a `SdyShardingRule`, or
                a function of the mesh and the MLIR types of operands and results that gives one.
            reduction_factors: factors of the rule over which the function sums.
            need_replication_factors: factors that each device must have whole.
            permutation_factors: factors along which devices exchange values.
            factor_sizes: sizes of the factors of compounds.

        Raises:
            TypeError: the rule is no text.
            ValueError: it is no rule.
        """
        facts: dict[str, Any] = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
            **factor_sizes,
        }
        self.partitioner = Partitioner(
            partition,
            infer_sharding_from_operands,
            propagate_user_sharding,
            sharding_rule,
            decodes=decode_shardings,
            **facts,
        )
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partitioner is None:
            problem = f"nobody has said how devices share {self.__name__}."
            fix = f"{self.__name__}.def_partition(partition, sharding_rule=...)"
            error(AttributeError, _NAME, problem, fix=fix)
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        static = {i % len(bound.args) for i in self.static_argnums}
        given = tuple(x for i, x in enumerate(bound.args) if i not in static)
        fixed = tuple(x for i, x in enumerate(bound.args) if i in static)
        leaves, in_tree = tree.flatten(given)

        def function(*dynamic: Any) -> Any:
            rest, kept = iter(dynamic), iter(fixed)
            every = range(len(bound.args))
            return self.fun(*(next(kept) if i in static else next(rest) for i in every))

        call, shapes = make_jaxpr(function, return_shape=True)(*given)
        outs = custom_partitioning_p.bind(
            *leaves,
            call=call,
            partitioner=self.partitioner,
            static_args=fixed,
            in_tree=in_tree,
            out_tree=tree.structure(shapes),
        )
        return tree.unflatten(tree.structure(shapes), outs)
