"""The bodies of control flow: users' functions as jaxprs whose types must agree.

Input: functions of trees and the types of their arguments.  Output: closed jaxprs that take what
the functions close over as leading arguments, staged once for each function and signature.

`fixpoint` finds what is known of a carry once more steps add nothing.  References that a body
writes become part of the carry, or further results, when they are discharged; those that it only
reads become constants.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax.core import config, dtypes, effects, refs, source, tree, tree_errors, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.cache import Cache
from minijax.core.check import same_type
from minijax.core.errors import InternalError, error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from minijax.core.native import PyTreeDef
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Tracer
from minijax.interpreters import flattening, staging
from minijax.interpreters.discharge import discharge_jaxpr, value_of, write_finals
from minijax.lax import creation
from minijax.lax.control_flow.lowering import ScanParams, WhileParams
from minijax.lax.families import Values
from minijax.lowering import eager, program
from minijax.runtime.array import Array

S = TypeVar("S")
F = TypeVar("F")


class Bodies(NamedTuple):
    """Functions staged for one signature, all with the same leading constants.

    Attributes:
        closed: for each function, the jaxpr of constants, then arguments.
        consts: the values of the constants: arrays, or tracers of outer traces.
        out_trees: for each function, the tree of its results.
    """

    closed: tuple[ClosedJaxpr, ...]
    consts: list[Any]
    out_trees: tuple[Any, ...]


_staged: weakref.WeakKeyDictionary[Any, dict[Any, Bodies]] = Cache(
    "bodies",
    "functions staged by control flow",
    key="the other functions, tree and types of the arguments, tracing context",
    owner="function",
    emptied=True,
    counted=False,
).by_owner()


def stage_bodies(
    name: str,
    functions: Sequence[Callable[..., Any]],
    in_tree: PyTreeDef,
    avals: Sequence[Any],
    described: Callable[..., Any] | None = None,
) -> Bodies:
    """Stages functions of `(args, kwargs)`, a tree of structure `in_tree`, for some types.

    Args:
        name: the public function, for messages.
        functions: users' functions, all of the same arguments.
        in_tree: tree of (args, kwargs).
        avals: the types of the leaves.
        described: the user's function that messages name, where the one staged wraps it.

    Raises:
        TypeError: a function cannot be called.
        NotImplementedError: a function has an effect that control flow cannot order.
    """
    for function in functions:
        eager.check_callable(name, function)
    try:
        known = _staged.setdefault(functions[0], {})
        others = tuple(map(weakref.ref, functions[1:]))
    except TypeError:
        return _stage_bodies(name, functions, in_tree, avals, described)
    key = (others, in_tree, tuple(avals), config.trace_context())
    found = known.get(key)
    if found is None:
        found = _stage_bodies(name, functions, in_tree, avals, described)
        # What closes over tracers is right for this call only.
        if not any(isinstance(c, Tracer) for c in found.consts):
            known[key] = found
    return found


def _stage_bodies(
    name: str,
    functions: Sequence[Callable[..., Any]],
    in_tree: PyTreeDef,
    avals: Sequence[Any],
    described: Callable[..., Any] | None,
) -> Bodies:
    staged = []
    out_trees = []
    merged: dict[int, tuple[Any, Any]] = {}
    for function in functions:
        info = flattening.debug_info(name, described or function, in_tree)
        flat = flattening.FlatFunction(function, in_tree, info.func_name)
        jaxpr, consts = staging.stage(flat, avals, info)
        info.set_result_paths(functools.partial(flattening.result_paths, flat.out_tree))
        if jaxpr.effects:
            effects.check_control_flow(name, jaxpr.effects)
        own = {id(c): v for c, v in zip(consts, jaxpr.constvars, strict=True)}
        merged.update((id(c), (own[id(c)].aval, c)) for c in consts)
        staged.append((jaxpr, own))
        out_trees.append(flat.out_tree)
    closed = tuple(
        ClosedJaxpr(
            Jaxpr(
                [],
                [own.get(key) or Var(aval) for key, (aval, _) in merged.items()] + jaxpr.invars,
                jaxpr.outvars,
                jaxpr.eqns,
                jaxpr.effects,
                jaxpr.debug_info.without_arg_names() if merged else jaxpr.debug_info,
            )
        )
        for jaxpr, own in staged
    )
    return Bodies(closed, [value for _, value in merged.values()], tuple(out_trees))


_wrappers: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = Cache(
    "wrapped bodies",
    "functions that the library makes of a user's",
    key="how it is wrapped",
    owner="function",
    counted=False,
).by_owner()


def wrapped_once(
    wrap: Callable[[Callable[[], Any]], Callable[..., Any]], function: Callable[..., Any]
) -> Callable[..., Any]:
    """`wrap` of a function, the same object each time, so that it is staged once.

    `wrap` gets a way to ask for the function: to hold it would keep it alive for ever.
    """
    try:
        known = _wrappers.setdefault(function, {})
    except TypeError:
        return wrap(lambda: function)
    if wrap not in known:
        known[wrap] = wrap(weakref.ref(function))
    return known[wrap]


def rearranged(
    closed: ClosedJaxpr, inputs: Sequence[Any], outputs: Sequence[int] | None = None
) -> ClosedJaxpr:
    """The same equations with arguments and results in another order, or fewer results.

    Args:
        closed: the function.
        inputs: for each new argument the number of the old one, or the type of one nobody reads.
        outputs: for each new result the number of the old one; all by default.
    """

    def make() -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        invars = [jaxpr.invars[i] if type(i) is int else Var(i) for i in inputs]
        outvars = jaxpr.outvars if outputs is None else [jaxpr.outvars[i] for i in outputs]
        info = jaxpr.debug_info.without_arg_names()
        constvars, eqns = jaxpr.constvars, jaxpr.eqns
        return ClosedJaxpr(
            Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, info), closed.consts
        )

    key = ("rearranged", tuple(inputs), None if outputs is None else tuple(outputs))
    return closed.remember(key, make)


def interleaved(counts: Sequence[int], more: Sequence[int]) -> list[int]:
    """Positions that put the k-th group of `more` behind the k-th group of `counts`.

    Before, all groups of `counts` come first, then all those of `more`.
    """
    order: list[int] = []
    first, second = 0, sum(counts)
    for count, extra in zip(counts, more, strict=True):
        order += range(first, first + count)
        order += range(second, second + extra)
        first += count
        second += extra
    return order


def unchanging(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> list[bool]:
    """Which parts of the carry a body returns as it was given them."""
    carry = closed.jaxpr.invars[num_consts : num_consts + num_carry]
    return [
        out is given for given, out in zip(carry, closed.jaxpr.outvars[:num_carry], strict=True)
    ]


def run_program(
    primitive: Primitive, closed: ClosedJaxpr, args: Values, params: Params
) -> Sequence[Any]:
    """Runs an operation that holds `closed` at once, as a program that is kept with `closed`."""
    eager.check_no_tracers(args)
    avals = list(map(aval_of, args))
    key = ("program", primitive, *params.items(), *avals)

    def make() -> ClosedJaxpr:
        return staging.stage_closed(
            lambda *xs: primitive.bind_all(*xs, **params), avals, closed.jaxpr.debug_info
        )

    whole = closed.remember(key, make)
    return program.run(whole, args, primitive.name)


def fixpoint(
    name: str, start: Sequence[S], step: Callable[[list[S]], tuple[F, Sequence[S]]]
) -> tuple[F, list[S]]:
    """What is known of a carry once another step adds nothing to it.

    A step of a loop may make a carry depend on more than the first one did: on tangents, on
    examples of a batch, on values that are unknown.  So its body is asked again, with what it
    answered, until it answers what it was asked.

    Args:
        name: the public function, for messages.
        start: what is known of each part of the carry before the first step.
        step: from what is known before a step, what comes of it, and what is known afterwards.

    Returns:
        What comes of the last step, and what is known before and after it.

    Raises:
        InternalError: the answers go round in circles, because a rule takes back what it has said.
    """
    seen = [list(start)]
    while True:
        found, answer = step(seen[-1])
        after = list(answer)
        if after == seen[-1]:
            return found, after
        if after in seen:
            error(
                InternalError,
                name,
                "what is known of the carry goes round in circles: a rule for an operation in the "
                "body takes back what it has said.",
                got={"before a step": seen[-1], "after it": after},
                expected="after each step as much as before it, or more",
            )
        seen.append(after)


def stage_carry(
    naming: Naming,
    in_tree: PyTreeDef,
    values: Sequence[Any],
    avals: Sequence[AbstractValue],
    stage: Callable[[Sequence[AbstractValue]], tuple[Bodies, Any]],
) -> tuple[Bodies, list[Any]]:
    """Stages a body, again where weakly typed parts of the carry take the types that it returns.

    A value that changes its dtype has a strong type, as any that is converted.

    Args:
        naming: what messages call the parts of the loop.
        in_tree: tree of the carry.
        values: the first carry.
        avals: its types.
        stage: the body for types of the carry, and the tree of the carry that it returns.

    Returns:
        The body, and the first carry in the types that the body takes.

    Raises:
        TypeError: the body returns another carry than it is given.
    """

    def again(before: list[Any]) -> tuple[Any, Sequence[Any]]:
        body, out_tree = stage(before)
        strong: list[Any] = [None] * len(before)
        if out_tree == in_tree:
            strong = list(map(_promoted, before, body.closed[0].out_avals))
        after = [
            a if dtype is None or dtype == a.dtype else a.update(dtype=dtype, weak_type=False)
            for a, dtype in zip(before, strong, strict=True)
        ]
        return (body, out_tree, strong), after

    found: list[Any]
    (body, out_tree, strong), found = fixpoint(naming.name, avals, again)
    check_carry(naming, in_tree, out_tree, found, body.closed[0])
    return body, [
        x if dtype is None and given is aval else retyped(x, dtype or aval.dtype, False)
        for x, given, aval, dtype in zip(values, avals, found, strong, strict=True)
    ]


def _promoted(before: AbstractValue, after: AbstractValue) -> Any:
    """The dtype of a first value that gives way to what a body returns for it, or None."""
    if not (isinstance(before, ShapedArray) and before.weak_type and before is not after):
        return None
    if not isinstance(after, ShapedArray) or before.shape != after.shape:
        return None
    if before.dtype == after.dtype:
        return None if after.weak_type else after.dtype
    return dtypes.result_type(before, after)


def retyped(x: object, dtype: np.dtype[Any], weak_type: bool) -> Any:
    """`x` with another dtype; numbers of Python stay numbers, and so literals of jaxprs."""
    if type(x) not in dtypes.python_scalar_dtypes:
        return creation.convert_to_type(x, dtype, weak_type)
    return np.asarray(x, dtype).item() if weak_type else np.asarray(x, dtype)[()]


class Naming(NamedTuple):
    """What a public function calls the parts of a loop.

    Attributes:
        name: the public function.
        body: its argument that is the body, such as "body_fun".
        carry: its argument that is the first carry, such as "init_val".
        part: which part of the carry that is, where the function adds parts of its own.
    """

    name: str
    body: str
    carry: str
    part: int | None = None


def check_carry(
    naming: Naming,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    in_avals: Sequence[AbstractValue],
    closed: ClosedJaxpr,
) -> None:
    """Refuses a body that returns another carry than it is given.

    Args:
        naming: what messages call them.
        in_tree: tree of the carry given.
        out_tree: tree of the carry returned.
        in_avals: types of its leaves.
        closed: the body, whose first results are the carry.

    Raises:
        TypeError: the trees or the types differ; the text names each leaf.
    """
    name, body, carry, part = naming
    function = closed.jaxpr.debug_info.func_src_info
    outvars = closed.jaxpr.outvars
    if part is not None:
        trees = in_tree.children()
        start = sum(t.num_leaves for t in trees[:part])
        in_tree, out_tree = trees[part], out_tree.children()[part]
        in_avals, outvars = in_avals[start:], outvars[start:]
    if in_tree != out_tree:
        error(
            TypeError,
            name,
            f"{body} returns a carry of another structure than {carry}.",
            got=f"{body}: {function}\n" + _differences(in_tree, out_tree, f"{carry}", "returned"),
            expected=f"the structure of {carry}, {in_tree}",
            fix=_missing_return(body, out_tree)
            or f"return from {body} what it is given, leaf for leaf; give {carry} every leaf "
            "that later steps need",
        )
    wrong = [
        f"{carry}{path}: {given.str_short()}   returned: {out.aval.str_short()}   "
        f"({difference(given, out.aval)}; {_origin(closed.jaxpr, out, given)})"
        for path, given, out in zip(leaf_names(in_tree), in_avals, outvars, strict=False)
        if not _fits(given, out.aval)
    ]
    if wrong:
        error(
            TypeError,
            name,
            f"{body} returns a carry of other types than {carry}.",
            got=f"{body}: {function}\n" + "\n".join(wrong),
            expected="equal types: the carry of one step is the argument of the next",
            fix=_casts_of_carry(naming, in_tree, in_avals, outvars)
            or f"give {carry} the type that is returned, or convert what {body} returns, "
            "with x.astype(dtype), a reshape, or sharding.reshard(x, spec)",
            more="",
        )


def check_branches(
    name: str, labels: Sequence[str], out_trees: Sequence[Any], closed: Sequence[ClosedJaxpr]
) -> None:
    """Refuses branches whose results differ in structure or type.

    Raises:
        TypeError: they do; the text names each leaf.
    """
    sources = [branch.jaxpr.debug_info.func_src_info for branch in closed]
    for i in range(1, len(closed)):
        functions = f"{labels[0]}: {sources[0]}\n{labels[i]}: {sources[i]}\n"
        if out_trees[i] != out_trees[0]:
            error(
                TypeError,
                name,
                f"{labels[0]} and {labels[i]} return results of different structure.",
                got=functions + _differences(out_trees[0], out_trees[i], labels[0], labels[i]),
                expected="one structure for all branches",
                fix=_missing_return(labels[0], out_trees[0])
                or _missing_return(labels[i], out_trees[i])
                or "return the same containers and keys from each, with zeros for what one of them "
                "does not compute",
            )
        wrong = [
            f"result{path}: {a.aval.str_short()} from {labels[0]}, {b.aval.str_short()} from "
            f"{labels[i]}   ({difference(a.aval, b.aval)}; {_origin(closed[i].jaxpr, b, a.aval)})"
            for path, a, b in zip(
                leaf_names(out_trees[0]),
                closed[0].jaxpr.outvars,
                closed[i].jaxpr.outvars,
                strict=True,
            )
            if not _fits(a.aval, b.aval)
        ]
        if wrong:
            error(
                TypeError,
                name,
                f"{labels[0]} and {labels[i]} return results of different types.",
                got=functions + "\n".join(wrong),
                expected="equal types from all branches",
                fix=_casts_of_results(out_trees[0], labels[0], closed[0], labels[i], closed[i])
                or "convert one with x.astype(dtype), reshape it, or split it as the other "
                "with sharding.reshard(x, spec)",
                more="",
            )


def _casts_of_carry(
    naming: Naming, in_tree: PyTreeDef, in_avals: Sequence[Any], outvars: Sequence[Any]
) -> str:
    """The casts after which a carry varies alike on both sides; empty if something else differs."""
    fixes = []
    for path, given, out in zip(leaf_names(in_tree), in_avals, outvars, strict=False):
        if _differ_in_variance_only(given, out.aval):
            fixes.append(vma.difference(given, out.aval, f"{naming.carry}{path}"))
            cast = vma.difference(out.aval, given)
            fixes.append(cast and f"{cast} on what {naming.body} returns for {naming.carry}{path}")
        elif not _fits(given, out.aval):
            return ""
    return "; ".join(filter(None, fixes))


def _casts_of_results(
    tree: PyTreeDef, first_name: str, first: ClosedJaxpr, second_name: str, second: ClosedJaxpr
) -> str:
    """The casts after which results vary alike; empty if they differ in something else too."""
    fixes = []
    for path, a, b in zip(leaf_names(tree), first.out_avals, second.out_avals, strict=True):
        if _differ_in_variance_only(a, b):
            for given, wanted, name in ((a, b, first_name), (b, a, second_name)):
                cast = vma.difference(given, wanted)
                fixes.append(cast and f"{cast} on result{path} of {name}")
        elif not _fits(a, b):
            return ""
    return "; ".join(filter(None, fixes))


def _differ_in_variance_only(a: AbstractValue, b: AbstractValue) -> bool:
    if not (isinstance(a, ShapedArray) and isinstance(b, ShapedArray)) or _fits(a, b):
        return False
    return _fits(a.with_manual_type(b.manual_axis_type), b)


def _fits(a: AbstractValue, b: AbstractValue) -> bool:
    return same_type(a, b) and a.split == b.split


def leaf_names(treedef: PyTreeDef) -> list[str]:
    """The path of each leaf, such as `['w'][0]`; empty for a tree that is a leaf."""
    return [tree_errors.keystr(path) for path in tree_errors.leaf_paths(treedef)]


def difference(a: AbstractValue, b: AbstractValue) -> str:
    """In what two types differ, in a word or two."""
    if not (isinstance(a, ShapedArray) and isinstance(b, ShapedArray)):
        return "the kinds differ"
    facts = (
        ("shapes", a.shape, b.shape),
        ("dtypes", a.dtype, b.dtype),
        ("shardings", a.split, b.split),
    )
    found = [what for what, x, y in facts if x != y]
    return f"the {' and '.join(found) or 'varying axes'} differ"


def _missing_return(function: str, out_tree: PyTreeDef) -> str:
    """The fix for a function that returned nothing; no text for one that did."""
    if not tree_errors.forgets_return(out_tree):
        return ""
    return f"a `return` in {function}: without one, a function returns None"


def _differences(first: PyTreeDef, second: PyTreeDef, first_name: str, second_name: str) -> str:
    return "\n".join(
        f"{first_name}{tree_errors.keystr(found.path)}: {found.first}   "
        f"{second_name}{tree_errors.keystr(found.path)}: {found.second}   ({found.reason})"
        for found in tree_errors.differences(first, second, prefix=False)
    )


def _origin(jaxpr: Jaxpr, atom: Atom, expected: Any) -> str:
    """Where a value first got a type that `expected` is not, in words."""
    if type(atom) is Literal:
        return "a constant"
    made_by: dict[Atom, Eqn] = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    eqn = made_by.get(atom)
    if eqn is None:
        return "an argument, returned as it is"

    def is_wrong(aval: AbstractValue) -> bool:
        if not isinstance(aval, ShapedArray):
            return False
        out = atom.aval
        if out.dtype != expected.dtype and aval.dtype == out.dtype:
            return True
        if out.shape == expected.shape:
            return bool(out.split != expected.split and aval.split == out.split)
        return bool(aval.shape == out.shape)

    while True:
        earlier = next((v for v in eqn.invars if v in made_by and is_wrong(v.aval)), None)
        if earlier is None:
            return f"first by {eqn.primitive} at {source.summarize(eqn.source)}"
        eqn = made_by[earlier]


def flatten_values(name: str, argument: str, value: object) -> tuple[list[Any], Any, list[Any]]:
    """Leaves, tree and types of an argument whose leaves must be arrays or numbers.

    Raises:
        TypeError: a leaf is neither.
    """
    leaves, treedef = tree.flatten(value)

    def names() -> list[str]:
        return [argument + path for path in leaf_names(treedef)]

    return leaves, treedef, list(flattening.avals_of(leaves, names, name))


def check_references(
    name: str, argument: str, treedef: PyTreeDef, leaves: Sequence[Any], consts: Sequence[Any]
) -> None:
    """Refuses a body that would know one reference under two names.

    Args:
        name: the public function, for messages.
        argument: what the tree of `leaves` is called.
        treedef: that tree.
        leaves: what the body is given.
        consts: what it closes over.

    Raises:
        ValueError: a reference is given twice, or given and closed over.
    """
    if any(map(refs.is_reference, leaves)):
        refs.check_distinct(
            name, leaves, lambda: [argument + path for path in leaf_names(treedef)], consts
        )


def call_tree(args_tree: PyTreeDef) -> Any:
    """The tree of (args, kwargs) for a call with positional arguments of a tree."""
    return tree.treedef_tuple((args_tree, _NO_KEYWORDS))


_NO_KEYWORDS = tree.structure({})


def discharge_cond(
    primitive: Primitive, index: Array, *args: Any, branches: tuple[ClosedJaxpr, ...], **params: Any
) -> Sequence[Any]:
    """What one branch writes, the others return as they were given it."""
    finals = sorted({i for branch in branches for i in discharge_jaxpr(branch).finals})
    pure = tuple(discharge_jaxpr(branch, finals).closed for branch in branches)
    outs = primitive.bind_all(index, *map(value_of, args), branches=pure, **params)
    return write_finals(outs, [args[i] for i in finals])


def discharge_scan(primitive: Primitive, *args: Any, **params: Any) -> Sequence[Any]:
    """References among the constants are carried, slices of those scanned over are stacked."""
    loop = ScanParams(**params)
    num_consts = loop.num_consts
    body, finals = discharge_jaxpr(loop.jaxpr)
    carried = [i for i in finals if i < num_consts]
    stacked = [i for i in finals if i >= num_consts]
    consts = [i for i in range(num_consts) if i not in carried]
    order = [*consts, *carried, *range(num_consts, len(args))]
    count = len(loop.jaxpr.out_avals)
    first_stacked = count + len(carried)
    outputs = [
        *range(count, first_stacked),
        *range(count),
        *range(first_stacked, len(body.out_avals)),
    ]
    pure = loop._replace(
        jaxpr=rearranged(body, order, outputs),
        num_consts=len(consts),
        num_carry=len(carried) + loop.num_carry,
    )
    values = list(map(value_of, args))
    outs = primitive.bind_all(*(values[i] for i in order), **pure._asdict())
    rest = write_finals(outs[len(carried) :], [args[i] for i in stacked])
    write_finals(outs[: len(carried)], [args[i] for i in carried])
    return rest


class _Part(NamedTuple):
    """The condition or the body of a loop, for a state of carried references, then the carry.

    Attributes:
        closed: constants, then the carry, to its results and the final values of what it writes.
        places: for each constant, its number among the carried references, or None if it stays.
        finals: which constants it writes.
    """

    closed: ClosedJaxpr
    places: tuple[int | None, ...]
    finals: tuple[int, ...]

    def call(self, consts: Sequence[Any], state: Sequence[Any], size: int) -> tuple[Any, Any]:
        """The results, and the `size` carried references afterwards."""
        given = iter(consts)
        args = [next(given) if place is None else state[place] for place in self.places]
        outs = staging.eval_closed_jaxpr(self.closed, *args, *state[size:])
        count = len(outs) - len(self.finals)
        carried = list(state[:size])
        for i, value in zip(self.finals, outs[count:], strict=True):
            place = self.places[i]
            assert place is not None
            carried[place] = value
        return outs[:count], carried

    def select(self, consts: Sequence[Any]) -> list[Any]:
        """Those of the constants that are not carried."""
        return [x for x, place in zip(consts, self.places, strict=True) if place is None]


class _Loop(NamedTuple):
    """A loop whose written references are carried in front of the carry.

    A condition that writes runs once before the loop and then at the end of each step; what it
    says is carried in front of all.
    """

    test: _Part
    step: _Part
    size: int

    @property
    def tests_in_body(self) -> bool:
        """Whether the condition writes references."""
        return bool(self.test.finals)

    def stage(self) -> tuple[ClosedJaxpr, ClosedJaxpr]:
        """The condition and the body as jaxprs, each of its constants and the state."""
        test, step, size = self
        cond_consts = test.select(test.closed.in_avals[: len(test.places)])
        body_consts = step.select(step.closed.in_avals[: len(step.places)])
        state: list[Any] = [None] * size
        for part in (test, step):
            for aval, place in zip(part.closed.in_avals, part.places, strict=False):
                if place is not None:
                    state[place] = aval
        state += step.closed.in_avals[len(step.places) :]
        split = len(body_consts)

        def body(*args: Any) -> list[Any]:
            carry, carried = step.call(args[:split], args[split:], size)
            return [*carried, *carry]

        def condition(*args: Any) -> Any:
            return test.call(args[: len(cond_consts)], args[len(cond_consts) :], size)[0]

        def body_with_test(*args: Any) -> list[Any]:
            consts, (_, *before) = args[: -len(state) - 1], args[-len(state) - 1 :]
            after = body(*consts[len(cond_consts) :], *before)
            (again,), carried = test.call(consts[: len(cond_consts)], after, size)
            return [again, *carried, *after[size:]]

        if not self.tests_in_body:
            return (
                _staged_like(condition, [*cond_consts, *state], test.closed),
                _staged_like(body, [*body_consts, *state], step.closed),
            )
        state_with_test = [test.closed.out_avals[0], *state]
        return (
            _staged_like(lambda again, *_: [again], state_with_test, test.closed),
            _staged_like(
                body_with_test, [*cond_consts, *body_consts, *state_with_test], step.closed
            ),
        )


def _staged_like(
    function: Callable[..., Any], avals: Sequence[Any], like: ClosedJaxpr
) -> ClosedJaxpr:
    return staging.stage_closed(function, avals, like.jaxpr.debug_info.without_arg_names())


def discharge_while(primitive: Primitive, *args: Any, **params: Any) -> Sequence[Any]:
    """References that the condition or the body writes are carried in front of the carry."""
    given = WhileParams(**params)
    cond_args, body_args, init = given.split(args)
    test, step = discharge_jaxpr(given.cond_jaxpr), discharge_jaxpr(given.body_jaxpr)
    written = [cond_args[i] for i in test.finals] + [body_args[i] for i in step.finals]
    cells = list({id(cell): cell for cell in written}.values())
    slots = {id(cell): i for i, cell in enumerate(cells)}
    loop = _Loop(
        _Part(test.closed, tuple(slots.get(id(x)) for x in cond_args), test.finals),
        _Part(step.closed, tuple(slots.get(id(x)) for x in body_args), step.finals),
        len(cells),
    )
    new_cond, new_body = given.body_jaxpr.remember(("discharge", loop), loop.stage)
    cond_consts = loop.test.select(list(map(value_of, cond_args)))
    body_consts = loop.step.select(list(map(value_of, body_args)))
    state = [cell.read() for cell in cells] + list(init)
    if loop.tests_in_body:
        (again,), carried = loop.test.call(cond_consts, state, loop.size)
        state = [again, *carried, *init]
        cond_consts, body_consts = [], cond_consts + body_consts
    pure = WhileParams(len(cond_consts), new_cond, len(body_consts), new_body)
    outs: Sequence[Any] = primitive.bind_all(*cond_consts, *body_consts, *state, **pure._asdict())
    outs = outs[int(loop.tests_in_body) :]
    write_finals(outs[: loop.size], cells)
    return outs[loop.size :]
