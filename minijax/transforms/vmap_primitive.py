"""The primitive `vmap`: a function of one example, applied to each of a batch, not yet batched.

`vmap` batches at once, but where a program is checked: there the function of one example must be
checked first, because a batch hides what an example does, such as which branch it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from minijax.core import axes, config, effects, printing, vma
from minijax.core import axes as core_axes
from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, Values
from minijax.interpreters import (
    batching,
    casts,
    checking,
    key_reuse,
    named_batching,
    passes,
    staging,
)
from minijax.interpreters.structural import in_front, moveaxis, reduce_sum, to_batch_dims
from minijax.lax import functionalization, slicing
from minijax.lowering import module
from minijax.sharding import rules
from minijax.transforms.jaxpr_call import JaxprCall, first_fault

if TYPE_CHECKING:
    from minijax.interpreters.key_reuse import KeyFlow
    from minijax.lax.functionalization import Checker
    from minijax.lowering.stablehlo import LoweringContext


class Vmap(JaxprCall):
    """Applies `jaxpr` to each example; all results have the batch's dimension in front.

    Parameters: the `size` of the batch, which operands are `mapped`, along dimension 0, and the
    names of the axis.
    """

    name = "vmap"
    per_operand: ClassVar[Mapping[str, Any]] = {"mapped": True}

    def inside(self, params: Mapping[str, Any]) -> config.override[Any]:
        return _axis(params)

    def outside(self, found: frozenset[Any], params: Mapping[str, Any]) -> frozenset[Any]:
        return effects.without_axis(found, params["axis_name"])

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        return _batched(args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        return [aval.with_dim(0, params["size"]) for aval in params["jaxpr"].out_avals]

    def shard(
        self, avals: Avals, outs: Avals, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[PartitionSpec]:
        return [rules.spec_of(aval).inserted(0) for aval in jaxpr.out_avals]

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        return module.lower_function(ctx, lambda *xs: _batched(xs, **params), *values)

    def summed(self, cts: list[Any], params: Mapping[str, Any]) -> list[Any]:
        # What all examples share gets the cotangents of all.
        return [
            ct if m or ct is None else reduce_sum(ct, (0,))
            for ct, m in zip(cts, params["mapped"], strict=True)
        ]

    def batch(
        self, size: int, args: Values, dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int]]:
        # Within one example of this vmap, the other batch is along dimension 0.
        moved = [
            x if d is None else moveaxis(x, d, int(m))
            for x, d, m in zip(args, dims, params["mapped"], strict=True)
        ]
        with _axis(params):
            whole, _ = batching.batch_jaxpr(
                params["jaxpr"], size, [d is not None for d in dims], True
            )
        outs = self.bind(*moved, **{**params, "jaxpr": whole})
        return list(outs), [1 for _ in outs]


@key_reuse.follow_keys.rule(Vmap)
def _follow_keys_of_vmap(
    primitive: Vmap, flow: KeyFlow, keys: Sequence[Any], **params: Any
) -> list[Any]:
    axes = [0 if m else None for m in params["mapped"]]
    return key_reuse.follow_slices(primitive, flow, keys, axes, params)


@checking.check_inside.rule(Vmap)
def _check_inside_of_vmap(
    primitive: Vmap, checker: Checker, args: Values, params: dict[str, Any]
) -> Any:
    with _axis(params):
        inner = checker.inner(params["jaxpr"])
    outs = _batched(args, **{**params, "jaxpr": inner.closed})
    return first_fault(checker, inner, outs, params["size"])


printing.hidden_params.set(frozenset({"axis_name", "spmd_axis_name"}), Vmap)
vma.agree.rule(Vmap)(casts.agree_call)
core_axes.binds_axis.set("axis_name", Vmap)


vmap_p = Vmap()


def _axis(params: Mapping[str, Any]) -> config.override[Any]:
    return axes.extend(params["axis_name"], params["size"])


def _batched(
    args: Values,
    *,
    jaxpr: ClosedJaxpr,
    size: int,
    mapped: Sequence[bool],
    axis_name: Hashable,
    spmd_axis_name: Hashable,
) -> list[Any]:
    """The results for the whole batch, along dimension 0."""
    outs, dims = named_batching.batch_flat(
        lambda *xs: staging.eval_closed_jaxpr(jaxpr, *xs),
        size,
        args,
        [0 if m else None for m in mapped],
        axis_name=axis_name,
        spmd_axis_name=spmd_axis_name,
    )
    return to_batch_dims(outs, dims, 0, size)


def map_unbatched(
    function: Callable[..., Sequence[Any]],
    size: int,
    args: Values,
    dims: Sequence[int | None],
    debug_info: DebugInfo,
    may_be_shared: Callable[[], bool],
    *,
    axis_name: Any = None,
    spmd_axis_name: Any = None,
) -> tuple[list[Any], Sequence[int | None]]:
    """As `named_batching.batch_flat`, but leaves the function as one of one example.

    Only if some results `may_be_shared`, asked once the function has run, it is found out which
    are the same for all examples.
    """
    avals = [
        aval if d is None else aval.without_dim(d)
        for aval, d in zip(map(aval_of, args), dims, strict=True)
    ]
    with axes.extend(axis_name, size):
        jaxpr, consts = staging.stage(function, avals, debug_info)
    moved = in_front(args, dims)
    params = {
        "jaxpr": ClosedJaxpr(passes.close_over_constants(jaxpr)),
        "size": size,
        "mapped": (*(False for _ in consts), *(d is not None for d in dims)),
        "axis_name": axis_name,
        "spmd_axis_name": spmd_axis_name,
    }
    outs = list(vmap_p.bind(*consts, *moved, **params))
    if not may_be_shared():
        return outs, [0] * len(outs)
    differ = _differing(**params)
    return (
        [
            x if differs else slicing.index_in_dim(x, 0, 0, keepdims=False)
            for x, differs in zip(outs, differ, strict=True)
        ],
        [0 if differs else None for differs in differ],
    )


def _differing(
    *, jaxpr: ClosedJaxpr, size: int, mapped: Sequence[bool], **names: Any
) -> list[bool]:
    """Which results may differ between examples."""
    kinds = config.checking.value
    with axes.extend(names["axis_name"], size), config.checking(frozenset()):
        # Functionalized, because checks have effects, with which not everything can be batched.
        inner = functionalization.check_jaxpr(jaxpr, kinds)
        _, found = batching.batch_jaxpr(inner.closed, size, mapped)
    return found[len(found) - len(jaxpr.out_avals) :]
