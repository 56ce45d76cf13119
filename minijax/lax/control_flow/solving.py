"""Solvers with derivatives of their own: `custom_root` and `custom_linear_solve`.

Input: a function, and how to solve equations with it.  Output: the solution, differentiated by
the implicit function theorem and not through the steps of the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from minijax.core import tree, vma
from minijax.core.aval import aval_of
from minijax.core.check import same_type
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.native import PyTreeDef
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.interpreters import batching, checking, jvp, staging, transpose
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import in_front, instantiate, to_batch_dim
from minijax.lax.binary import sub
from minijax.lax.control_flow import bodies, checks
from minijax.lax.families import BatchDims, Values
from minijax.lax.unary import neg
from minijax.lowering import eager, module
from minijax.lowering.stablehlo import LoweringContext
from minijax.sharding import rules

R = TypeVar("R")


class Solver(Primitive):
    """Runs a solver that is not differentiated; its derivative is that of the equation it solves.

    Operands: the constants of each jaxpr, as many as `const_lengths` says, then what `solve` takes
    after its own.  Results: the solution, then auxiliary results.
    """

    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, jaxprs: RootParts | SolveParts, **_: Any) -> list[Any]:
        return jaxprs.solve.out_avals

    def effects(self, *avals: Any, jaxprs: RootParts | SolveParts, **_: Any) -> frozenset[Any]:
        return jaxprs.solve.effects

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        return bodies.run_program(self, params["jaxprs"].solve, args, params)

    def lower(
        self,
        ctx: LoweringContext,
        *values: Any,
        const_lengths: RootParts | SolveParts,
        jaxprs: RootParts | SolveParts,
    ) -> list[Any]:
        groups = _groups(values, const_lengths)
        consts, given = groups[const_lengths._fields.index("solve")], groups[-1]
        solve = jaxprs.solve
        return module.lower_jaxpr(ctx, solve.jaxpr, solve.consts, [*consts, *given])


checking.check_inside.rule(Solver)(checks.check_solver)
vma.vary.rule(Solver)(vma.from_types)


class RootParts(NamedTuple):
    """What `custom_root` holds: jaxprs, or the numbers of constants that they take first.

    Attributes:
        f: constants, x to f(x).
        solve: constants, the guess to the solution, then auxiliary results.
        tangent_solve: constants, x, y to the solution v of df(x) v = y.
    """

    f: Any
    solve: Any
    tangent_solve: Any


class CustomRoot(Solver):
    """A root of a function, found by a solver that is not differentiated.

    Operands: the constants of each jaxpr, then the guess.  With f(x(a), a) = 0 the derivative is
    dx = -(df/dx)^-1 df/da.
    """

    name = "custom_root"

    def jvp(
        self, primals: Values, tangents: Tangents, *, const_lengths: RootParts, jaxprs: RootParts
    ) -> Dual:
        outs = self.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
        f_consts, _, solve_consts, guess = _groups(primals, const_lengths)
        f_dots = tangents[: const_lengths.f]
        count = len(guess)
        out_dots: list[Any] = [Zero.like(x) for x in outs]
        if all(type(t) is Zero for t in f_dots):
            return outs, out_dots
        root = outs[:count]
        _, y_dots = jvp.jvp_flat(
            lambda *xs: staging.eval_closed_jaxpr(jaxprs.f, *xs, *root), f_consts, f_dots
        )
        right = [neg(instantiate(t)) for t in y_dots]
        out_dots[:count] = staging.eval_closed_jaxpr(
            jaxprs.tangent_solve, *solve_consts, *root, *right
        )
        return outs, out_dots

    def batch(
        self,
        size: int,
        args: Values,
        dims: BatchDims,
        *,
        const_lengths: RootParts,
        jaxprs: RootParts,
    ) -> Batched:
        # A root is found for every example at once, so everything around it is mapped too.
        consts = [[d is not None for d in group] for group in _groups(dims, const_lengths)]
        whole = [True] * len(consts[3])
        solve, _ = batching.batch_jaxpr(jaxprs.solve, size, consts[1] + consts[3], True)
        f, _ = batching.batch_jaxpr(jaxprs.f, size, consts[0] + whole, True)
        tangent_solve, _ = batching.batch_jaxpr(
            jaxprs.tangent_solve, size, consts[2] + whole + whole, True
        )
        outs = self.bind(
            *in_front(args, dims),
            const_lengths=const_lengths,
            jaxprs=RootParts(f, solve, tangent_solve),
        )
        return outs, [0] * len(outs)


class SolveParts(NamedTuple):
    """What `custom_linear_solve` holds: jaxprs, or the numbers of constants they take first.

    Attributes:
        matvec: constants, x to A x.
        vecmat: constants, y to A^T y; None without reverse mode.
        solve: constants, b to the solution x of A x = b, then auxiliary results.
        transpose_solve: constants, c to the solution y of A^T y = c; None without reverse mode.
    """

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> SolveParts:
        """The same for the transposed equation."""
        return SolveParts(self.vecmat, self.matvec, self.transpose_solve, self.solve)


class CustomLinearSolve(Solver):
    """The solution x of A x = b, found by a solver that is not differentiated.

    Operands: the constants of each jaxpr, then b.  Linear in b; the derivative is
    dx = A^-1 (db - dA x).
    """

    name = "custom_linear_solve"

    def jvp(
        self, primals: Values, tangents: Tangents, *, const_lengths: SolveParts, jaxprs: SolveParts
    ) -> Dual:
        outs = self.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
        count = len(jaxprs.matvec.out_avals)
        solution = outs[:count]
        consts = primals[: const_lengths.matvec]
        const_dots = tangents[: const_lengths.matvec]
        right = list(tangents[len(tangents) - count :])
        if any(type(t) is not Zero for t in const_dots):
            _, moved = jvp.jvp_flat(
                lambda *xs: staging.eval_closed_jaxpr(jaxprs.matvec, *xs, *solution),
                consts,
                const_dots,
            )
            right = [_difference(b, t) for b, t in zip(right, moved, strict=True)]
        out_dots: list[Any] = [Zero.like(x) for x in outs]
        if any(type(t) is not Zero for t in right):
            dots = self.bind(
                *primals[: len(primals) - count],
                *map(instantiate, right),
                const_lengths=const_lengths,
                jaxprs=jaxprs,
            )
            out_dots[:count] = dots[:count]
        return outs, out_dots

    def transpose(
        self, cts: Tangents, *args: Any, const_lengths: SolveParts, jaxprs: SolveParts
    ) -> Cotangents:
        if jaxprs.transpose_solve is None:
            problem = "reverse-mode differentiation needs a solver of the transposed equation."
            fix = "give transpose_solve, or symmetric=True"
            error(TypeError, "lax.custom_linear_solve", problem, fix=fix)
        *consts, b = _groups(args, const_lengths)
        count = len(b)
        if any(type(ct) is not Zero for ct in cts[count:]):
            problem = "auxiliary results of a solver have no derivative."
            error(NotImplementedError, "lax.custom_linear_solve", problem)
        matvec, vecmat, solve, transpose_solve = consts
        outs = self.bind(
            *vecmat,
            *matvec,
            *transpose_solve,
            *solve,
            *map(instantiate, cts[:count]),
            const_lengths=const_lengths.transposed(),
            jaxprs=jaxprs.transposed(),
        )
        given = outs[:count]
        return [None] * (len(args) - count) + [
            ct if is_linear(x) else None for x, ct in zip(b, given, strict=True)
        ]

    def batch(
        self,
        size: int,
        args: Values,
        dims: BatchDims,
        *,
        const_lengths: SolveParts,
        jaxprs: SolveParts,
    ) -> Batched:
        # One equation for every example, so both its sides are mapped.
        *consts, b = ([d is not None for d in group] for group in _groups(dims, const_lengths))
        whole = [True] * len(b)
        wide = SolveParts(
            *(
                None
                if closed is None
                else batching.batch_jaxpr(closed, size, [*flags, *whole], True)[0]
                for closed, flags in zip(jaxprs, consts, strict=True)
            )
        )
        front = in_front(args, dims)
        start = len(args) - len(b)
        right = [
            x if mapped else to_batch_dim(x, None, 0, size)
            for x, mapped in zip(front[start:], b, strict=True)
        ]
        outs = self.bind(*front[:start], *right, const_lengths=const_lengths, jaxprs=wide)
        return outs, [0] * len(outs)


custom_root_p = CustomRoot()
linear_solve_p = CustomLinearSolve()


def _groups(values: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """The operands of each jaxpr, then the rest."""
    groups, start = [], 0
    for length in lengths:
        groups.append(list(values[start : start + length]))
        start += length
    return [*groups, list(values[start:])]


def _difference(x: Any, y: Any) -> Any:
    """The difference of two tangents, either of which may be `Zero`."""
    if type(y) is Zero:
        return x
    return neg(y) if type(x) is Zero else sub(x, y)


class _Staged(NamedTuple):
    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any


def _stage(name: str, function: Callable[..., Any], *args: Any) -> _Staged:
    """`function` as a jaxpr of what it closes over, then of the leaves of `args`."""
    leaves, treedef = tree.flatten(args)
    avals = [aval_of(x).strip_weak_type() for x in leaves]
    staged = bodies.stage_bodies(name, [function], bodies.call_tree(treedef), avals)
    return _Staged(staged.closed[0], staged.consts, staged.out_trees[0])


def _check_like(name: str, what: str, staged: _Staged, like: str, expected: object) -> None:
    """Refuses a function whose result has other types than `expected`.

    Raises:
        ValueError: it has; the text shows both.
    """
    leaves, expected_tree = tree.flatten(expected)
    wanted = [aval_of(x) for x in leaves]
    out_tree = staged.out_tree
    found = staged.closed.out_avals[: out_tree.num_leaves]
    fits = out_tree == expected_tree and all(map(same_type, found, wanted))
    if not fits:
        error(
            ValueError,
            name,
            f"the result of {what} must have the structure and types of {like}.",
            got=f"{out_tree} of {', '.join(a.str_short() for a in found)}",
            expected=f"{expected_tree} of {', '.join(a.str_short() for a in wanted)}",
        )


def _solution_tree(name: str, staged: _Staged, has_aux: bool) -> tuple[Any, Any]:
    """The trees of a solver's solution and of its auxiliary results.

    Raises:
        ValueError: with `has_aux`, it returns no pair.
    """
    if not has_aux:
        return staged.out_tree, None
    children = staged.out_tree.children() if staged.out_tree.node_data() else []
    if len(children) != 2:
        problem = "with has_aux=True, solve must return a pair (solution, aux)."
        error(ValueError, name, problem, got=str(staged.out_tree))
    return children[0], children[1]


def _result(outs: Sequence[Any], solution: PyTreeDef, aux: PyTreeDef | None) -> Any:
    count = solution.num_leaves
    value = tree.unflatten(solution, outs[:count])
    return value if aux is None else (value, tree.unflatten(aux, outs[count:]))


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: object,
    solve: Callable[[Callable[[Any], Any], Any], R],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> R:
    """A root of `f`, differentiated by the implicit function theorem.

    The root depends on what `f` closes over; the derivative is found from that of `f` at the
    root, whatever `solve` does.

    Shapes:     f: a tree of the types of initial_guess -> the same.
    Derivative: both modes, if `tangent_solve` is made of differentiable operations.
    Lowers to:  what `solve` lowers to.

    Args:
        f: the function whose root is wanted.
        initial_guess: where `solve` starts, a tree of arrays.
        solve: takes `f` and the guess; returns the root.
        tangent_solve: takes a linear function g and y; returns the solution x of g(x) = y.
        has_aux: whether `solve` returns (root, aux).

    Raises:
        ValueError: a function returns other types than the guess has.

    Example:
        >>> def newton(f, x):
        ...     return lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.grad(f)(x), x)
        >>> def square_root(a):
        ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> square_root(4.0), jax.grad(square_root)(4.0)
        (Array(2., dtype=float32), Array(0.25, dtype=float32, weak_type=True))
    """
    name = "lax.custom_root"
    for function in (f, solve, tangent_solve):
        eager.check_callable(name, function)
    guess, guess_tree, _ = bodies.flatten_values(name, "initial_guess", initial_guess)
    staged_f = _stage(name, f, initial_guess)
    _check_like(name, "f", staged_f, "initial_guess", initial_guess)
    staged_solve = _stage(name, lambda x: solve(f, x), initial_guess)
    solution, aux = _solution_tree(name, staged_solve, has_aux)
    solved = staged_solve._replace(out_tree=solution)
    _check_like(name, "solve", solved, "initial_guess", initial_guess)

    def linearize_and_solve(x: object, y: object) -> Any:
        point = tree.leaves(x)

        def derivative(direction: object) -> Any:
            leaves = tree.leaves(direction)
            _, dots = jvp.jvp_flat(
                lambda *xs: tree.leaves(f(tree.unflatten(guess_tree, xs))), point, leaves
            )
            return tree.unflatten(guess_tree, list(map(instantiate, dots)))

        return tangent_solve(derivative, y)

    staged_tangent = _stage(name, linearize_and_solve, initial_guess, initial_guess)
    _check_like(name, "tangent_solve", staged_tangent, "initial_guess", initial_guess)
    parts = (staged_f, staged_solve, staged_tangent)
    outs = custom_root_p.bind_all(
        *(c for part in parts for c in part.consts),
        *guess,
        const_lengths=RootParts(*(len(part.consts) for part in parts)),
        jaxprs=RootParts(*(part.closed for part in parts)),
    )
    return _result(outs, solution, aux)


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: object,
    solve: Callable[[Callable[[Any], Any], Any], R],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> R:
    """The solution x of `matvec(x) = b`, differentiated as the solution of a linear equation.

    Shapes:     matvec: a tree of the types of b -> the same.
    Derivative: forward mode; reverse mode with `transpose_solve` or `symmetric`.
    Lowers to:  what `solve` lowers to.

    Args:
        matvec: a linear function; may close over what the solution is differentiated by.
        b: the right side, a tree of arrays.
        solve: takes `matvec` and b; returns x.
        transpose_solve: takes the transposed function and c; returns the solution of the
            transposed equation.
        symmetric: whether `matvec` is its own transpose, so that `solve` solves both.
        has_aux: whether the solvers return (x, aux).

    Raises:
        ValueError: a function returns other types than b has.

    Example:
        >>> A, b = jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0])
        >>> solve = lambda matvec, b: b / jnp.diag(A)
        >>> lax.custom_linear_solve(lambda x: A @ x, b, solve, symmetric=True)
        Array([1., 2.], dtype=float32)
    """
    name = "lax.custom_linear_solve"
    for function in (matvec, solve):
        eager.check_callable(name, function)
    right, b_tree, _ = bodies.flatten_values(name, "b", b)
    staged_matvec = _stage(name, matvec, b)
    _check_like(name, "matvec", staged_matvec, "b", b)
    staged_solve = _stage(name, lambda x: solve(matvec, x), b)
    solution, aux = _solution_tree(name, staged_solve, has_aux)
    _check_like(name, "solve", staged_solve._replace(out_tree=solution), "b", b)
    nothing = _Staged(None, [], None)  # type: ignore[arg-type]
    parts = [staged_matvec, nothing, staged_solve, nothing]
    if symmetric:
        parts = [staged_matvec, staged_matvec, staged_solve, staged_solve]
    elif transpose_solve is not None:
        staged_vecmat = _transposed(staged_matvec, len(right))
        transposed_solver = transpose_solve

        def vecmat(y: object) -> Any:
            outs = staging.eval_closed_jaxpr(
                staged_vecmat.closed, *staged_vecmat.consts, *tree.leaves(y)
            )
            return tree.unflatten(b_tree, outs)

        backward = _stage(name, lambda y: transposed_solver(vecmat, y), b)
        backward_tree, _ = _solution_tree(name, backward, has_aux)
        solved = backward._replace(out_tree=backward_tree)
        _check_like(name, "transpose_solve", solved, "b", b)
        parts = [staged_matvec, staged_vecmat, staged_solve, backward]
    outs = linear_solve_p.bind_all(
        *(c for part in parts for c in part.consts),
        *right,
        const_lengths=SolveParts(*(len(part.consts) for part in parts)),
        jaxprs=SolveParts(*(part.closed for part in parts)),
    )
    return _result(outs, solution, aux)


def _transposed(matvec: _Staged, count: int) -> _Staged:
    linear = [False] * len(matvec.consts) + [True] * count
    closed, _ = transpose.transpose_jaxpr(matvec.closed, linear, [True] * count, [True] * count)
    return _Staged(closed, matvec.consts, matvec.out_tree)
