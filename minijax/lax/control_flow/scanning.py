"""Scans, `scan`, and what is made of loops over slices: `map` and `associative_scan`.

Input: a step, a carry, and arrays whose first dimension is the steps.  Output: the last carry,
and what the steps returned, stacked.  The arguments and results of a body are, in order:
constants, carry, slices -> carry, slices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, SupportsIndex, TypeVar

import numpy as np

from minijax.core import config, dtypes, refs, tree, tree_errors, vma
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Var
from minijax.core.meshes import PartitionSpec
from minijax.core.native import PyTreeDef
from minijax.core.operators import BatchDims
from minijax.core.primitive import Batched, Dual, Primitive, Tangents, Zero
from minijax.core.trace import Tracer
from minijax.interpreters import (
    batching,
    checking,
    flattening,
    jvp,
    key_reuse,
    passes,
    remat,
    uniformity,
)
from minijax.interpreters.jvp import with_zeros
from minijax.interpreters.structural import instantiate, moveaxis, to_batch_dim, to_batch_dims
from minijax.lax import creation, references, shape, slicing
from minijax.lax.binary import add, bitwise_or
from minijax.lax.control_flow import bodies, checks, halves, lowering
from minijax.lax.control_flow.lowering import ScanParams
from minijax.lax.families import Avals, Values, canonicalize_axis, scalar_like
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad
from minijax.lowering import diagnosis, eager
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.array import Array
from minijax.sharding import rules

Carry = TypeVar("Carry")
Y = TypeVar("Y")


class Scan(Primitive):
    """Applies `jaxpr` `length` times to (constants, carry, slices of the rest).

    Shapes: constants, carry T_i[s_i], stacked U_i[length, u_i] -> carry, stacked V_i[length, v_i].
    """

    name = "scan"
    user: ClassVar[str] = "lax.scan"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True

    def abstract_eval(
        self, *avals: Any, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
    ) -> list[Any]:
        outs = jaxpr.out_avals
        return outs[:num_carry] + [a.with_dim(0, length) for a in outs[num_carry:]]

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> list[PartitionSpec]:
        loop = ScanParams(**params)
        rules.check_unsharded(self, loop.split(avals)[2], (0,))
        specs = [rules.spec_of(aval) for aval in loop.jaxpr.out_avals]
        return specs[: loop.num_carry] + [s.inserted(0) for s in specs[loop.num_carry :]]

    def effects(self, *_: Any, jaxpr: ClosedJaxpr, **__: Any) -> frozenset[Any]:
        return refs.effects_of_body(jaxpr.jaxpr)

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        return bodies.run_program(self, params["jaxpr"], args, params)

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        return lowering.lower_scan(ctx, values, ScanParams(**params))

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        loop = ScanParams(**params)
        num_consts, num_carry = loop.num_consts, loop.num_carry
        consts, moving, slices = loop.split([type(t) is not Zero for t in tangents])
        num_ys = len(loop.jaxpr.out_avals) - num_carry

        # A carry's tangent may become non-zero on the way.
        def again(moving: list[bool]) -> tuple[tuple[ClosedJaxpr, list[bool]], list[bool]]:
            flags = consts + moving + slices
            found = jvp.jvp_jaxpr(loop.jaxpr, flags, moving + [False] * num_ys)
            return found, found[1][:num_carry]

        (derivative, out_moving), moving = bodies.fixpoint(self.user, moving, again)
        groups = [num_consts, num_carry, len(slices)]
        dot_groups = [sum(consts), sum(moving), sum(slices)]
        order = bodies.interleaved(groups, dot_groups)
        whole = loop._replace(
            jaxpr=bodies.rearranged(
                derivative,
                order,
                bodies.interleaved(
                    [num_carry, num_ys], [dot_groups[1], sum(out_moving[num_carry:])]
                ),
            ),
            num_consts=num_consts + dot_groups[0],
            num_carry=num_carry + dot_groups[1],
        )
        flags = [*consts, *moving, *slices]
        dots = [instantiate(t) for t, nz in zip(tangents, flags, strict=True) if nz]
        args = [*primals, *dots]
        outs = self.bind(*(args[i] for i in order), **whole._asdict())
        split = num_carry + dot_groups[1]
        given = [*outs[num_carry:split], *outs[split + num_ys :]]
        primal_outs = [*outs[:num_carry], *outs[split : split + num_ys]]
        return primal_outs, with_zeros(out_moving, given, [aval_of(x) for x in primal_outs])

    partial_eval = halves.partial_eval_scan
    transpose = halves.transpose_scan

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        loop = ScanParams(**params)
        num_carry = loop.num_carry
        consts, carry, slices = loop.split([d is not None for d in dims])
        num_ys = len(loop.jaxpr.out_avals) - num_carry

        # A carry may become different for each example on the way.
        def again(carry: list[bool]) -> tuple[tuple[ClosedJaxpr, list[bool]], list[bool]]:
            flags = consts + carry + slices
            found = batching.batch_jaxpr(loop.jaxpr, size, flags, carry + [False] * num_ys)
            return found, found[1][:num_carry]

        (body, out_batched), carry = bodies.fixpoint(self.user, carry, again)
        pairs = loop.split(list(zip(args, dims, strict=True)))
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in pairs[0]]
        moved += [
            to_batch_dim(x, d, 0, size) if b else x
            for (x, d), b in zip(pairs[1], carry, strict=True)
        ]
        # Dimension 0 is that of the steps, outside of what a step sees.
        moved += [x if d is None else moveaxis(x, d, 1) for x, d in pairs[2]]
        outs = self.bind(*moved, **loop._replace(jaxpr=body)._asdict())
        out_dims = [0 if b else None for b in out_batched[:num_carry]]
        return list(outs), out_dims + [1 if b else None for b in out_batched[num_carry:]]


dtypes.knows_extended.set(True, Scan)
checking.check_inside.rule(Scan)(checks.check_scan)
key_reuse.follow_keys.rule(Scan)(checks.keys_of_scan)
remat.division.rule(Scan)(halves.divide_scan)
uniformity.differ.rule(Scan)(checks.differ_scan)
refs.discharge.rule(Scan)(bodies.discharge_scan)
refs.with_references.rule(Scan)(references.with_references)


@diagnosis.walk.rule(Scan)
def _walk_of_scan(
    primitive: Scan, run: Callable[..., Sequence[Any]], *args: Any, **params: Any
) -> None:
    loop = ScanParams(**params)
    consts, carry, xs = loop.split(args)
    for i in reversed(range(loop.length)) if loop.reverse else range(loop.length):
        slices = [slicing.index_in_dim(x, i, 0, False) for x in xs]
        carry = list(run(loop.jaxpr, *consts, *carry, *slices)[: loop.num_carry])


@passes.dce.rule(Scan)
def _dce_of_scan(primitive: Scan, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    slim, keep, live = halves.needed_scan(ScanParams(**eqn.params), used)
    return eqn.replace(
        invars=[v for v, k in zip(eqn.invars, keep, strict=True) if k],
        outvars=[v for v, u in zip(eqn.outvars, live, strict=True) if u],
        params=slim._asdict(),
        effects=slim.jaxpr.effects,
    )


vma.vary.rule(Scan)(vma.from_types)
vma.agree.rule(Scan)(checks.agree_scan)


scan_p = Scan()


def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: object,
    xs: object = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """Calls `carry, y = f(carry, x)` for each slice x of `xs`; the last carry, and the ys stacked.

    The body is staged, differentiated and compiled once, whatever the length.

    Shapes:     xs: a tree of T_i[length, s_i] -> ys: a tree of U_i[length, u_i].
    Derivative: both modes; reverse mode keeps what each step needs, stacked.
    Lowers to:  stablehlo.while.

    Args:
        f: one step, of the carry and a slice; returns a pair.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays, scanned over their first dimension; None for steps without input.
        length: the number of steps; needed where xs has no leaves.
        reverse: whether the steps run from the last slice to the first.
        unroll: how many steps to write out in one trip of the compiled loop; True or 0 for all.

    Raises:
        TypeError: f returns no pair, or a carry of other types; the text names the leaf.
        ValueError: lengths disagree, or there is none.

    Example:
        >>> lax.scan(lambda total, x: (total + x, total), 0, jnp.array([1, 2, 3]))
        (Array(6, dtype=int32), Array([0, 1, 3], dtype=int32, weak_type=True))
        >>> lax.scan(lambda state, _: (2 * state, None), 1, length=10)
        (Array(1024, dtype=int32, weak_type=True), None)
    """
    del _split_transpose
    return scan_named(
        bodies.Naming("lax.scan", "f", "init"),
        f,
        init,
        xs,
        length=length,
        reverse=reverse,
        unroll=unroll,
        described=f,
    )


def scan_named(
    naming: bodies.Naming,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: object,
    xs: object,
    *,
    described: Callable[..., Any],
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """`scan` for functions built on it.

    Args:
        naming: what messages call it, and its arguments.
        f: the step.
        init: the first carry.
        xs: what is scanned over.
        described: the user's function, for messages.
        length: the number of steps.
        reverse: whether they run backwards.
        unroll: how many to write out in one trip.
    """
    name = naming.name
    eager.check_callable(name, described)
    slices, xs_tree, xs_avals = bodies.flatten_values(name, "xs", xs)
    length = scan_length(name, xs_tree, xs_avals, length)
    unroll = _unroll(name, unroll, length)
    if config.disable_jit.value and length:
        return _python_scan(f, init, slices, xs_tree, length, reverse)
    values, init_tree, avals = bodies.flatten_values(name, naming.carry, init)
    slice_avals = [a.without_dim(0) for a in xs_avals]
    in_tree = bodies.call_tree(tree.treedef_tuple((init_tree, xs_tree)))

    def stage(avals: Sequence[AbstractValue]) -> tuple[bodies.Bodies, Any]:
        body = bodies.stage_bodies(name, [f], in_tree, [*avals, *slice_avals], described)
        return body, _carry_tree(name, naming.body, body)

    body, values = bodies.stage_carry(naming, init_tree, values, avals, stage)
    closed, consts = body.closed[0], body.consts
    bodies.check_references(name, "xs", xs_tree, slices, consts)
    results = _bind(closed, consts, values, slices, length, bool(reverse), unroll)
    pair: tuple[Any, Any] = tree.unflatten(body.out_trees[0], results)
    return pair


def _bind(
    closed: ClosedJaxpr,
    consts: Sequence[Any],
    init: Sequence[Any],
    slices: Sequence[Any],
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """Scans what changes: neither the parts of the carry that stay, nor ys that are the xs."""
    num_consts, start = len(consts), len(consts) + len(init)
    fixed = bodies.unchanging(closed, num_consts, len(init))
    positions = {var: i for i, var in enumerate(closed.jaxpr.invars[start:])}
    known = {i: x for i, (x, f) in enumerate(zip(init, fixed, strict=True)) if f}
    for i, var in enumerate(closed.jaxpr.outvars[len(init) :], len(init)):
        if type(var) is Var and var in positions:
            x = slices[positions[var]]
            known[i] = creation.convert_to_type(x, var.aval.dtype, var.aval.weak_type)
    outputs = [i for i in range(len(closed.out_avals)) if i not in known]
    still = [i for i, f in enumerate(fixed) if f]
    changing = [i for i, f in enumerate(fixed) if not f]
    if known:
        carry = [num_consts + i for i in (*still, *changing)]
        inputs = [*range(num_consts), *carry, *range(start, len(closed.in_avals))]
        closed = bodies.rearranged(closed, inputs, outputs)
    results: Sequence[Any] = ()
    if outputs or closed.effects:
        results = scan_p.bind_all(
            *consts,
            *[init[i] for i in (*still, *changing)],
            *slices,
            jaxpr=closed,
            length=length,
            reverse=reverse,
            num_consts=num_consts + len(still),
            num_carry=len(changing),
            unroll=unroll,
        )
    known.update(zip(outputs, results, strict=True))
    return [known[i] for i in range(len(known))]


def _carry_tree(name: str, step: str, body: bodies.Bodies) -> Any:
    (out_tree,) = body.out_trees
    children = out_tree.children()
    if len(children) != 2:
        (closed,) = body.closed
        avals = closed.out_avals
        found = avals[0].str_short() if not children and avals else tree_errors.describe(out_tree)
        got = f"{found} from {closed.jaxpr.debug_info.func_src_info}"
        fix = "return (carry, None) if there is nothing to stack"
        if tree_errors.forgets_return(out_tree):
            fix = f"a `return` in {step}: without one, a function returns None; {fix}"
        error(TypeError, name, f"{step} must return a pair (carry, y).", got=got, fix=fix)
    return children[0]


def scan_length(
    name: str, xs_tree: PyTreeDef, avals: Sequence[Any], length: SupportsIndex | float | None
) -> int:
    """The number of steps, from what is scanned over and from what the user says.

    Raises:
        TypeError: the length is not an integer.
        ConcretizationTypeError: the length is traced.
        ValueError: the sizes disagree, or there is none.
    """
    paths = ["xs" + path for path in bodies.leaf_names(xs_tree)]
    scalars = [path for path, a in zip(paths, avals, strict=True) if not a.ndim]
    if scalars:
        problem = f"{', '.join(scalars)} cannot be scanned over: a scalar has no first dimension."
        fix = "close over it, or put it into the carry"
        if len(scalars) == len(avals) > 1:
            fix = "an array in place of the list or tuple of numbers: numpy.asarray(xs)"
        elif scalars == ["xs"]:
            fix = "an array; lax.scan(f, init, length=n) makes n steps over nothing"
        error(ValueError, name, problem, fix=fix)
    sizes = {a.shape[0] for a in avals}
    if length is not None:
        sizes.add(_integer_length(name, length))
    if len(sizes) == 1 and min(sizes) >= 0:
        return int(sizes.pop())
    if not sizes:
        fix = "give length" if name == "lax.scan" else "give an array, or use lax.scan"
        error(ValueError, name, "xs has no leaves, so the number of steps is unknown.", fix=fix)
    listed = [f"{path}: {a.str_short()}" for path, a in zip(paths, avals, strict=True)]
    if length is not None:
        listed.append(f"length: {length}")
    problem = "the lengths of what is scanned over disagree, or are negative."
    expected = "one size of the first dimensions"
    error(ValueError, name, problem, got="\n".join(listed), expected=expected)


def _integer_length(name: str, length: Any) -> int:
    if isinstance(length, float) and length.is_integer():
        return int(length)
    try:
        return operator.index(length)
    except TypeError:
        kind = ConcretizationTypeError if isinstance(length, Tracer) else TypeError
        got = f"{length!r} of type {type(length).__name__}"
        fix = "a Python int, or while_loop where the number of steps is computed"
        error(kind, name, "the length must be a concrete integer.", got=got, fix=fix, cause=None)


def _unroll(name: str, unroll: int | bool, length: int) -> int:
    every = max(length, 1)
    if isinstance(unroll, bool):
        return every if unroll else 1
    is_integer = isinstance(unroll, (int, np.integer))
    if not is_integer or unroll < 0:
        kind = ValueError if is_integer else TypeError
        problem = "unroll must be a boolean, or an integer that is not negative."
        error(kind, name, problem, got=repr(unroll))
    return int(unroll) or every


def _python_scan(
    f: Callable[[Any, Any], Any],
    carry: object,
    slices: Sequence[Any],
    xs_tree: PyTreeDef,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """The steps one by one, with jit disabled."""
    ys: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        of_step = [
            x.at[i] if refs.is_reference(x) else slicing.index_in_dim(x, i, keepdims=False)
            for x in slices
        ]
        carry, y = f(carry, tree.unflatten(xs_tree, of_step))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree.map(lambda *leaves: shape.stack(leaves), *ys)


R = TypeVar("R")


def _map_step(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: tuple[()], x: object) -> Any:
        return carry, function()(x)

    return step


def _batched_step(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: tuple[()], x: object) -> Any:
        return carry, _over_batch(function(), x)

    return step


def _over_batch(function: Callable[[Any], Any], xs: object) -> Any:
    """`function` applied to all slices of `xs` at once."""
    leaves, xs_tree = tree.flatten(xs)
    size = aval_of(leaves[0]).shape[0]
    flat = flattening.FlatFunction(
        function, bodies.call_tree(tree.treedef_tuple((xs_tree,))), "map"
    )
    outs, dims = batching.batch_flat(flat, size, leaves, [0] * len(leaves))
    placed = to_batch_dims(outs, dims, 0, size)
    return tree.unflatten(flat.out_tree, placed)


def map(f: Callable[[Any], R], xs: object, *, batch_size: int | None = None) -> R:
    """Maps `f` over the slices of `xs`, one after the other, and stacks the results.

    Shapes:     xs: a tree of T_i[n, s_i] -> a tree of U_i[n, u_i].
    Derivative: that of scan.
    Lowers to:  stablehlo.while.

    Args:
        f: a function of one slice.
        xs: a tree of arrays, mapped over their first dimension.
        batch_size: how many slices to compute at once, as vmap does; None or 0 for one by one.

    Raises:
        ValueError: xs has no leaves, sizes disagree, or the batch size is not positive.

    Example:
        >>> lax.map(lambda x: x * x, jnp.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
        >>> lax.map(lambda x: x * x, jnp.arange(4), batch_size=2)
        Array([0, 1, 4, 9], dtype=int32)
    """
    name = "lax.map"
    naming = bodies.Naming(name, "f", "init")
    eager.check_callable(name, f)
    leaves, xs_tree, avals = bodies.flatten_values(name, "xs", xs)
    length = scan_length(name, xs_tree, avals, None)
    if not batch_size:
        step = bodies.wrapped_once(_map_step, f)
        return scan_named(naming, step, (), xs, described=f)[1]
    if batch_size < 1:
        error(ValueError, name, "batch_size must be positive.", got=str(batch_size))
    count, rest = divmod(length, batch_size)
    whole = count * batch_size
    results = []
    if count:
        blocks = [
            shape.reshape(
                slicing.slice_in_dim(x, 0, whole) if rest else x,
                (count, batch_size, *aval.shape[1:]),
            )
            for x, aval in zip(leaves, avals, strict=True)
        ]
        step = bodies.wrapped_once(_batched_step, f)
        _, stacked = scan_named(naming, step, (), tree.unflatten(xs_tree, blocks), described=f)
        results.append(tree.map(_merged, stacked))
    if rest or not count:
        last = [slicing.slice_in_dim(x, whole, length) if count else x for x in leaves]
        results.append(_over_batch(f, tree.unflatten(xs_tree, last)))
    return tree.map(_joined, *results)


def _merged(x: Array) -> Any:
    """The first two dimensions as one."""
    dims = aval_of(x).shape
    return shape.reshape(x, (dims[0] * dims[1], *dims[2:]))


def _joined(*parts: Any) -> Any:
    return shape.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def associative_scan(
    fn: Callable[[Any, Any], R], elems: Any, reverse: bool = False, axis: int = 0
) -> R:
    """Prefix sums for any associative `fn`, in logarithmic depth.

    Element i of the result is fn(… fn(fn(elems[0], elems[1]), elems[2]) …, elems[i]).

    Shapes:     elems: a tree of T_i[s_i] of one size n along `axis` -> the same.
    Derivative: that of `fn`.
    Lowers to:  slices, `fn` on them, and interleaving; no loop.
    Source:     mirrors jax.lax.associative_scan (0.10); Blelloch, "Prefix Sums and Their
        Applications" (1990).

    Args:
        fn: an associative function of two trees, applied to many elements at once.
        elems: a tree of arrays.
        reverse: whether to go from the last element to the first.
        axis: the dimension of the elements.

    Raises:
        TypeError: `fn` cannot be called.
        ValueError: sizes along the axis disagree, or the axis does not exist, or `fn` returns
            another structure than `elems`.

    Example:
        >>> lax.associative_scan(jnp.add, jnp.array([1, 2, 3, 4]))
        Array([ 1,  3,  6, 10], dtype=int32)
        >>> lax.associative_scan(jnp.maximum, jnp.array([1, 4, 2, 3]), reverse=True)
        Array([4, 4, 3, 3], dtype=int32)
    """
    name = "lax.associative_scan"
    eager.check_callable(name, fn)
    leaves, elems_tree, avals = bodies.flatten_values(name, "elems", elems)
    if not leaves:
        return elems
    axes = [canonicalize_axis(axis, a.ndim, name) for a in avals]
    sizes = {a.shape[d] for a, d in zip(avals, axes, strict=True)}
    if len(sizes) > 1:
        got = ", ".join(a.str_short() for a in avals) + f"   axis: {axis}"
        error(ValueError, name, "the sizes of elems along the axis disagree.", got=got)
    if reverse:
        leaves = [shape.rev(x, (d,)) for x, d in zip(leaves, axes, strict=True)]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(tree.unflatten(elems_tree, a), tree.unflatten(elems_tree, b))
        flat, out_tree = tree.flatten(out)
        if out_tree.num_leaves != elems_tree.num_leaves:
            problem = "fn returns another structure than elems."
            error(ValueError, name, problem, got=str(out_tree), expected=str(elems_tree))
        return flat

    outs = _prefixes(combine, [as_operand(x) for x in leaves], axes)
    if reverse:
        outs = [shape.rev(x, (d,)) for x, d in zip(outs, axes, strict=True)]
    return tree.unflatten(elems_tree, outs)


def _prefixes(
    combine: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
    elems: Sequence[Any],
    axes: Sequence[int],
) -> list[Any]:
    """Prefix sums of flat elements: pairs are summed, their prefixes found, and filled in."""
    size = aval_of(elems[0]).shape[axes[0]]
    if size < 2:
        return list(elems)

    def part(xs: Sequence[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        return [
            slicing.slice_in_dim(x, start, stop, stride=stride, axis=d)
            for x, d in zip(xs, axes, strict=True)
        ]

    pairs = combine(part(elems, 0, size - 1, 2), part(elems, 1, size, 2))
    odd = _prefixes(combine, pairs, axes)
    num_odd = size // 2
    before = part(odd, 0, num_odd - 1) if size % 2 == 0 else odd
    even = combine(before, part(elems, 2, size, 2))
    even = [
        shape.concatenate([first, x], d)
        for first, x, d in zip(part(elems, 0, 1), even, axes, strict=True)
    ]
    return [_interleaved(a, b, d) for a, b, d in zip(even, odd, axes, strict=True)]


def _interleaved(even: Array, odd: Array, axis: int) -> Any:
    """Elements of two arrays in turn; the first may have one more."""
    first, second = aval_of(even), aval_of(odd)
    longer = int(first.shape[axis] > second.shape[axis])
    zero = scalar_like(0, even) if first.dtype != bool else False

    def spread(x: Array, before: int, after: int) -> Any:
        config = [(0, 0, 0)] * first.ndim
        config[axis] = (before, after, 1)
        return pad(x, zero, config)

    a, b = spread(even, 0, 1 - longer), spread(odd, 1, longer)
    return bitwise_or(a, b) if first.dtype == bool else add(a, b)
