"""Scans and branches in two halves: what runs now, and what runs later or backward.

Input: a scan, or branches, of known and unknown, or of known and linear, arguments.  Output: the
known half, with what the other one needs of it, and the rest.  Residuals of a scan are stacked, one
for each step; those of branches share places, because only one branch runs.  What each step would
compute anew from constants alone is computed once, outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, used_variables
from minijax.core.primitive import Primitive, Zero
from minijax.core.sequences import merge_lists, partition_list
from minijax.core.trace import Params
from minijax.interpreters import partial_eval, passes, remat, staging, transpose
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import add_tangents, instantiate, zeros
from minijax.lax.control_flow import bodies
from minijax.lax.control_flow.lowering import ScanParams
from minijax.lax.families import Values

Branches = tuple[ClosedJaxpr, ...]


class SplitScan(NamedTuple):
    """A scan's body split in two.

    Attributes:
        known: the constants `kept` and `hoisted`, other known arguments to known results, then
            residuals to stack.
        invariant: known constants to what is the same for all steps: first residuals.
        staged: the residuals `fixed`, `invariant`; unknown constants and carry; the residuals
            `sliced`, stacked; unknown slices; to unknown results.
        unknown: which arguments are unknown.
        out_unknown: which results are unknown.
        kept: which known constants the known half reads.
        hoisted: which results of `invariant` it reads.
        num_invariant: how many of them are residuals.
        fixed: the known arguments, all constants, that are residuals themselves.
        sliced: the known arguments, all scanned over, that are residuals themselves.
    """

    known: ClosedJaxpr
    invariant: ClosedJaxpr
    staged: ClosedJaxpr
    unknown: list[bool]
    out_unknown: list[bool]
    kept: list[int]
    hoisted: list[int]
    num_invariant: int
    fixed: list[int]
    sliced: list[int]


def split_body(loop: ScanParams, unknown: Sequence[bool]) -> SplitScan:
    """Splits the body of a scan; parts of the carry that become unknown count as unknown."""
    key = ("split", tuple(unknown), loop.num_consts, loop.num_carry)
    return loop.jaxpr.remember(key, lambda: _split_body(loop, unknown))


def _split_body(loop: ScanParams, unknown: Sequence[bool]) -> SplitScan:
    closed, num_carry = loop.jaxpr, loop.num_carry
    consts, carry, slices = loop.split(unknown)
    no_ys = [False] * (len(closed.out_avals) - num_carry)

    def again(carry: list[bool]) -> tuple[partial_eval.PartialJaxpr, list[bool]]:
        part = partial_eval.partial_eval_jaxpr(closed, consts + carry + slices, carry + no_ys)
        return part, part.out_unknown[:num_carry]

    part, carry = bodies.fixpoint("lax.scan", carry, again)
    flags = [*consts, *carry, *slices]
    jaxpr = part.known.jaxpr
    num_known_consts = consts.count(False)
    num_outs = part.out_unknown.count(False)
    follows_consts = _invariant_variables(jaxpr, num_known_consts)
    kinds, variables = _residuals_by_kind(
        part, num_known_consts, carry.count(False), follows_consts
    )
    rest = part.staged.jaxpr.invars[len(part.sources) :]
    num_lead = sum(consts) + sum(carry)
    staged_invars = [
        *variables["fixed"],
        *variables["invariant"],
        *rest[:num_lead],
        *variables["sliced"],
        *variables["stacked"],
        *rest[num_lead:],
    ]
    known_outs = jaxpr.outvars[:num_outs] + kinds["stacked"]
    const_vars, other_vars = jaxpr.invars[:num_known_consts], jaxpr.invars[num_known_consts:]
    needed = _slim(part.known, jaxpr.eqns, jaxpr.invars, known_outs).jaxpr

    def is_invariant(eqn: Eqn) -> bool:
        # An equation without results has effects, and stays in the loop.
        return bool(eqn.outvars) and follows_consts.issuperset(eqn.outvars)

    inside = [e for e in needed.eqns if not is_invariant(e)]
    read = used_variables(needed.replace(eqns=inside))
    kept = [i for i, v in enumerate(const_vars) if v in read]
    hoisted = [v for e in needed.eqns if is_invariant(e) for v in e.outvars if v in read]
    invariant = list(dict.fromkeys([*kinds["invariant"], *hoisted]))
    known_vars = [*(const_vars[i] for i in kept), *hoisted, *other_vars]
    once = [e for e in jaxpr.eqns if is_invariant(e)]
    return SplitScan(
        _slim(part.known, inside, known_vars, known_outs),
        _slim(part.known, once, const_vars, invariant),
        ClosedJaxpr(part.staged.jaxpr.replace(invars=staged_invars), part.staged.consts),
        flags,
        part.out_unknown,
        kept,
        [invariant.index(v) for v in hoisted],
        len(kinds["invariant"]),
        kinds["fixed"],
        kinds["sliced"],
    )


def _residuals_by_kind(
    part: partial_eval.PartialJaxpr, num_consts: int, num_carry: int, follows_consts: set[Var]
) -> tuple[dict[str, list[Any]], dict[str, list[Var]]]:
    """For each kind of residual, which there are, and their variables in the staged half."""
    jaxpr = part.known.jaxpr
    computed = iter(jaxpr.outvars[part.out_unknown.count(False) :])
    kinds: dict[str, list[Any]] = {"fixed": [], "invariant": [], "sliced": [], "stacked": []}
    variables: dict[str, list[Var]] = {kind: [] for kind in kinds}
    item: Any
    for var, source in zip(part.staged.jaxpr.invars, part.sources, strict=False):
        if source is not None and source < num_consts:
            kind, item = "fixed", source
        elif source is not None and source >= num_consts + num_carry:
            kind, item = "sliced", source
        else:
            item = next(computed) if source is None else jaxpr.invars[source]
            kind = "invariant" if item in follows_consts else "stacked"
        kinds[kind].append(item)
        variables[kind].append(var)
    return kinds, variables


def _slim(
    closed: ClosedJaxpr, eqns: Sequence[Eqn], invars: Sequence[Var], outvars: Sequence[Any]
) -> ClosedJaxpr:
    """Those of `eqns` that some results need, as a function of some of the arguments."""
    info = closed.jaxpr.debug_info.without_arg_names()
    jaxpr = closed.jaxpr.replace(invars=invars, eqns=eqns, outvars=outvars, debug_info=info)
    return passes.clean(ClosedJaxpr(jaxpr, closed.consts), keep_inputs=True)[0]


def _invariant_variables(jaxpr: Jaxpr, num_consts: int) -> set[Var]:
    """The variables that are the same in all steps: they follow from constants alone."""
    found = {*jaxpr.constvars, *jaxpr.invars[:num_consts]}
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(type(v) is not Var or v in found for v in eqn.invars):
            found.update(eqn.outvars)
    return found


class _Halves(NamedTuple):
    """A scan whose known half has run: its known results, and the rest as another scan."""

    known_outs: Sequence[Any]
    args: list[Any]
    params: ScanParams
    split: SplitScan


def _run_known_half(
    primitive: Primitive, args: Values, unknown: Sequence[bool], loop: ScanParams
) -> _Halves:
    split = split_body(loop, unknown)
    out_unknown = split.out_unknown
    known_args, rest = partition_list(split.unknown, args)
    num_known_consts = split.unknown[: loop.num_consts].count(False)
    invariant = staging.eval_closed_jaxpr(split.invariant, *known_args[:num_known_consts])
    consts = [known_args[i] for i in split.kept] + [invariant[i] for i in split.hoisted]
    outs: Sequence[Any] = ()
    if split.known.jaxpr.outvars or split.known.effects:
        num_carry = out_unknown[: loop.num_carry].count(False)
        known = loop._replace(jaxpr=split.known, num_consts=len(consts), num_carry=num_carry)
        outs = primitive.bind_all(*consts, *known_args[num_known_consts:], **known._asdict())
    num_known = out_unknown.count(False)
    fixed = [known_args[i] for i in split.fixed] + invariant[: split.num_invariant]
    stacked = [known_args[i] for i in split.sliced] + list(outs[num_known:])
    num_unknown = sum(split.unknown[: loop.num_consts]), sum(out_unknown[: loop.num_carry])
    lead = sum(num_unknown)
    staged = loop._replace(
        jaxpr=split.staged, num_consts=len(fixed) + num_unknown[0], num_carry=num_unknown[1]
    )
    staged_args = [*fixed, *rest[:lead], *stacked, *rest[lead:]]
    return _Halves(outs[:num_known], staged_args, staged, split)


def partial_eval_scan(
    self: Primitive, trace: partial_eval.PartialTrace, args: Values, params: Params
) -> list[Any]:
    """The rule of `scan`: one scan now, one in the staged program."""
    # Operations on known values alone pass through `trace` to where they are computed.
    unknown = [trace.is_unknown(x) for x in args]
    half = _run_known_half(self, args, unknown, ScanParams(**params))
    out_unknown = half.split.out_unknown
    staged_outs: Sequence[Any] = ()
    if any(out_unknown) or half.split.staged.effects:
        staged_outs = trace.unknown.process(self, half.args, half.params._asdict())
    return merge_lists(out_unknown, half.known_outs, staged_outs)


def needed_scan(
    loop: ScanParams, used: Sequence[bool]
) -> tuple[ScanParams, list[bool], list[bool]]:
    """The part of a scan that some of its results need.

    Returns:
        That scan, which of the arguments it takes, and which of the results it gives: those that
        are used, and the parts of the carry that these read in later steps.
    """
    ys = list(used[loop.num_carry :])

    def again(live: list[bool]) -> tuple[tuple[list[bool], list[bool]], list[bool]]:
        consts, read, slices = loop.split(passes.dce_closed_jaxpr(loop.jaxpr, live + ys)[1])
        return (consts, slices), [u or r for u, r in zip(live, read, strict=True)]

    (consts, slices), live = bodies.fixpoint("lax.scan", used[: loop.num_carry], again)
    keep = consts + live + slices
    body, _ = passes.dce_closed_jaxpr(loop.jaxpr, live + ys, keep)
    slim = loop._replace(jaxpr=body, num_consts=sum(consts), num_carry=sum(live))
    return slim, keep, live + ys


def transpose_scan(self: Primitive, cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """The rule of `scan`: the steps in the other order, with cotangents as carry."""
    # A result whose cotangent is zero is one that nobody reads.
    loop, keep, live = needed_scan(ScanParams(**params), [type(ct) is not Zero for ct in cts])
    cts = [ct for ct, k in zip(cts, live, strict=True) if k]
    given = iter(
        _transpose_scan(self, loop, cts, [x for x, k in zip(args, keep, strict=True) if k])
    )
    return [next(given) if k else None for k in keep]


def _transpose_scan(
    self: Primitive, loop: ScanParams, cts: Sequence[Any], args: Sequence[Any]
) -> list[Any]:
    linear = [is_linear(x) for x in args]
    if not all(_linear_carry(loop, linear)):
        half = _run_known_half(self, args, linear, loop)
        unknown_cts = [ct for ct, u in zip(cts, half.split.out_unknown, strict=True) if u]
        given = transpose_scan(self, unknown_cts, *half.args, **half.params._asdict())
        rest = (ct for x, ct in zip(half.args, given, strict=True) if is_linear(x))
        return [next(rest) if lin else None for lin in linear]
    const_args, init, slices = loop.split(args)
    known_consts = [x for x in const_args if not is_linear(x)]
    ct_consts = [zeros(x.aval.tangent_aval()) for x in const_args if is_linear(x)]
    backward = loop._replace(
        jaxpr=backward_body(loop, linear),
        reverse=not loop.reverse,
        num_consts=len(known_consts),
        num_carry=len(ct_consts) + loop.num_carry,
    )
    known_slices = [x for x in slices if not is_linear(x)]
    outs = iter(
        self.bind_all(
            *known_consts, *ct_consts, *map(instantiate, cts), *known_slices, **backward._asdict()
        )
    )
    found = [next(outs) if is_linear(x) else None for x in const_args]
    for x in init:
        ct = next(outs)
        # A part of the carry that starts from a known zero has no one to give it to.
        found.append(ct if is_linear(x) else None)
    return found + [next(outs) if is_linear(x) else None for x in slices]


def _linear_carry(loop: ScanParams, linear: Sequence[bool]) -> list[bool]:
    """Which parts of the carry depend on linear arguments, after enough steps."""
    jaxpr = loop.jaxpr.jaxpr
    consts, carry, slices = loop.split(linear)

    def again(carry: list[bool]) -> tuple[None, list[bool]]:
        flags = consts + carry + slices
        depends = {v for v, lin in zip(jaxpr.invars, flags, strict=True) if lin}
        for eqn in jaxpr.eqns:
            if any(type(v) is Var and v in depends for v in eqn.invars):
                depends.update(eqn.outvars)
        outs = jaxpr.outvars[: loop.num_carry]
        return None, [
            before or (type(out) is Var and out in depends)
            for before, out in zip(carry, outs, strict=True)
        ]

    return bodies.fixpoint("lax.scan", carry, again)[1]


def backward_body(loop: ScanParams, linear: Sequence[bool]) -> ClosedJaxpr:
    """The transposed body of a scan that is linear in its carry.

    Known constants; cotangents of linear constants, summed so far, of the carry, and of slices;
    known slices -> the cotangents as carry; cotangents of linear slices.
    """
    closed, num_consts, num_carry = loop.jaxpr, loop.num_consts, loop.num_carry
    consts, _, slices = loop.split(linear)
    flags = [*consts, *[True] * num_carry, *slices]
    key = ("backward", tuple(flags), num_consts, num_carry)

    def make() -> ClosedJaxpr:
        num_cts = len(closed.out_avals)
        backward, _ = transpose.transpose_jaxpr(
            closed, flags, [True] * num_cts, [True] * sum(flags)
        )
        num_known = flags[:num_consts].count(False)
        num_linear = sum(flags[:num_consts])
        known = backward.in_avals[:num_known]
        known_slices = backward.in_avals[num_known : len(backward.in_avals) - num_cts]
        cts = backward.in_avals[len(backward.in_avals) - num_cts :]
        totals = backward.out_avals[:num_linear]

        def function(*args: Any) -> list[Any]:
            fixed, rest = args[:num_known], args[num_known:]
            sums, rest = rest[:num_linear], rest[num_linear:]
            given, slices = rest[:num_cts], rest[num_cts:]
            outs = staging.eval_closed_jaxpr(backward, *fixed, *slices, *given)
            added = list(map(add_tangents, sums, outs[:num_linear]))
            return added + outs[num_linear:]

        avals = [*known, *totals, *cts, *known_slices]
        return staging.stage_closed(function, avals, closed.jaxpr.debug_info.without_arg_names())

    return closed.remember(key, make)


def divide_scan(
    self: Primitive, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    """The rule of `scan`: what the policy saves of each step is stacked."""
    loop = ScanParams(**eqn.params)
    num_carry = loop.num_carry
    key = ("divide", tuple(wanted), policy, loop.num_consts, num_carry)
    body, live = loop.jaxpr.remember(key, lambda: _divide_scan_body(loop, wanted, policy))
    new = body.now.out_avals[len(eqn.outvars) :]
    outvars = eqn.outvars + [Var(a.with_dim(0, loop.length)) for a in new]
    now = eqn
    if new:
        now = eqn.replace(outvars=outvars, params={**eqn.params, "jaxpr": body.now})
    saved = [outvars[i] for i in body.saved]
    consts, carry, slices = loop.split(eqn.invars)
    again = eqn.replace(
        invars=[
            *consts,
            *(v for v, keep in zip(carry, live, strict=True) if keep),
            *slices,
            *saved,
        ],
        # The last carry is no result of the second scan where nobody wants it.
        outvars=[
            outvars[i] if i >= num_carry or wanted[i] else Var(outvars[i].aval) for i in body.given
        ],
        params=loop._replace(jaxpr=body.again, num_carry=sum(live))._asdict(),
        effects=body.again.effects,
    )
    return remat.Division([now], remat.without_unread(again), saved)


def _divide_scan_body(
    loop: ScanParams, wanted: Sequence[bool], policy: remat.Policy
) -> tuple[remat.DividedBody, list[bool]]:
    """The divided body, and which parts of the carry its second half takes and gives."""
    closed, num_carry = loop.jaxpr, loop.num_carry
    _, carry, _ = loop.split(closed.jaxpr.invars)
    ys = list(wanted[num_carry:])
    # Only what is stacked can be read again: a carry's result is that of the last step.
    reusable = [False] * num_carry + [True] * len(ys)

    def again(live: list[bool]) -> tuple[remat.DividedBody, list[bool]]:
        body = remat.divide_body(closed, live + ys, policy, reusable)
        read = used_variables(body.again.jaxpr)
        return body, [u or v in read for u, v in zip(live, carry, strict=True)]

    body, live = bodies.fixpoint("lax.scan", wanted[:num_carry], again)
    jaxpr = body.again.jaxpr
    dropped = {v for v, keep in zip(carry, live, strict=True) if not keep}
    slim = jaxpr.replace(invars=[v for v in jaxpr.invars if v not in dropped])
    return body._replace(again=ClosedJaxpr(slim, closed.consts)), live


def union(flags: Iterable[Sequence[bool]]) -> list[bool]:
    """For each place, whether one of several lists of flags has it set."""
    return [any(column) for column in zip(*flags, strict=True)]


class SplitBranches(NamedTuple):
    """Branches split into what is known and what is not, with residuals of common types.

    Attributes:
        known: known operands to known results, then the residuals that are computed.
        staged: the residuals `shared`, the computed ones, unknown operands, to unknown results.
        out_unknown: which results are unknown.
        shared: the known operands that are residuals themselves.
    """

    known: Branches
    staged: Branches
    out_unknown: list[bool]
    shared: list[int]


def split_branches(branches: Branches, unknown: Sequence[bool]) -> SplitBranches:
    """Branches split by which operands are unknown, remembered with the first of them."""
    key = ("split", branches[1:], tuple(unknown))
    return branches[0].remember(key, lambda: _make_split(branches, unknown))


def _make_split(branches: Branches, unknown: Sequence[bool]) -> SplitBranches:
    out_unknown = union(partial_eval.partial_eval_jaxpr(b, unknown).out_unknown for b in branches)
    parts = [partial_eval.partial_eval_jaxpr(b, unknown, out_unknown) for b in branches]
    shared = sorted({i for part in parts for i in part.sources if i is not None})
    num_known = out_unknown.count(False)
    slots, places = _slots([part.known.out_avals[num_known:] for part in parts])
    return SplitBranches(
        tuple(_fill(p.known, t, slots) for p, t in zip(parts, places, strict=True)),
        tuple(
            _spread(p, t, slots, shared, branches[0], unknown)
            for p, t in zip(parts, places, strict=True)
        ),
        out_unknown,
        shared,
    )


def _slots(avals: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[int]]]:
    """Common types for values that each branch hands on, and the place of each branch's values.

    Only one branch runs, so values of one type can take the same place.
    """
    slots: list[Any] = []
    of_type: dict[Any, list[int]] = {}
    places = []
    for needed in avals:
        used = dict.fromkeys(needed, 0)
        taken = []
        for aval in needed:
            own = of_type.setdefault(aval, [])
            if used[aval] == len(own):
                own.append(len(slots))
                slots.append(aval)
            taken.append(own[used[aval]])
            used[aval] += 1
        places.append(taken)
    return slots, places


def _fill(known: ClosedJaxpr, places: Sequence[int], slots: Sequence[Any]) -> ClosedJaxpr:
    """The known part of a branch, with zeros in the slots of other branches' residuals."""

    def function(*args: Any) -> list[Any]:
        outs = staging.eval_closed_jaxpr(known, *args)
        count = len(outs) - len(places)
        residuals = dict(zip(places, outs[count:], strict=True))
        return outs[:count] + [
            residuals[i] if i in residuals else zeros(aval) for i, aval in enumerate(slots)
        ]

    return staging.stage_closed(function, known.in_avals, known.jaxpr.debug_info)


def _spread(
    part: partial_eval.PartialJaxpr,
    places: Sequence[int],
    slots: Sequence[Any],
    shared: Sequence[int],
    branch: ClosedJaxpr,
    unknown: Sequence[bool],
) -> ClosedJaxpr:
    """The staged part of a branch, which takes the residuals of all branches."""
    jaxpr = part.staged.jaxpr
    known_avals = [a for a, u in zip(branch.in_avals, unknown, strict=True) if not u]
    leading = [Var(known_avals[i]) for i in shared] + [Var(aval) for aval in slots]
    computed = iter(places)
    for var, source in zip(jaxpr.invars[: len(part.sources)], part.sources, strict=True):
        place = next(computed) + len(shared) if source is None else shared.index(source)
        leading[place] = var
    invars = leading + jaxpr.invars[len(part.sources) :]
    return ClosedJaxpr(
        Jaxpr([], invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
    )


class DividedBranches(NamedTuple):
    """Branches divided between now and later, with saved values of common types.

    Attributes:
        now: operands to results, then to saved values of the types `slots`.
        again: operands, the results in `reused`, the values in `slots`, to the results in `given`.
        slots: types of the saved values that are not results.
        reused: the results that every branch saves.
        given: the other results that are wanted.
    """

    now: Branches
    again: Branches
    slots: list[Any]
    reused: list[int]
    given: list[int]


def divide_branches(
    branches: Branches, wanted: Sequence[bool], policy: remat.Policy
) -> DividedBranches:
    """Branches divided between now and later, remembered with the first of them."""
    key = ("divide", branches[1:], tuple(wanted), policy)
    return branches[0].remember(key, lambda: _make_division(branches, wanted, policy))


def _make_division(
    branches: Branches, wanted: Sequence[bool], policy: remat.Policy
) -> DividedBranches:
    places = [i for i, w in enumerate(wanted) if w]
    parts = [remat.divide(b.jaxpr, [b.jaxpr.outvars[i] for i in places], policy) for b in branches]
    pairs = list(zip(branches, parts, strict=True))
    reused = [i for i in places if all(b.jaxpr.outvars[i] in part.saved for b, part in pairs)]
    given = [i for i in places if i not in reused]
    results = [{b.jaxpr.outvars[i] for i in reused} for b in branches]
    extra = [
        [v for v in part.saved if v not in known]
        for part, known in zip(parts, results, strict=True)
    ]
    slots, taken = _slots([[v.aval for v in values] for values in extra])
    now = []
    again = []
    for (branch, part), values, where in zip(pairs, extra, taken, strict=True):
        jaxpr = branch.jaxpr
        whole = jaxpr.replace(outvars=jaxpr.outvars + values, eqns=part.now)
        now.append(_fill(ClosedJaxpr(whole, branch.consts), where, slots))
        held = dict(zip(where, values, strict=True))
        slot_vars = [held.get(i) or Var(aval) for i, aval in enumerate(slots)]
        outs = [jaxpr.outvars[i] for i in reused]
        first = [v if v not in outs[:i] else Var(v.aval) for i, v in enumerate(outs)]
        second = jaxpr.replace(
            invars=jaxpr.invars + first + slot_vars,
            outvars=[jaxpr.outvars[i] for i in given],
            eqns=part.again,
            debug_info=jaxpr.debug_info.without_arg_names(),
        )
        again.append(ClosedJaxpr(second, branch.consts))
    return DividedBranches(tuple(now), tuple(again), slots, reused, given)
