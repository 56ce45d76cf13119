"""Steps of generated programs that compute on one device: arithmetic, shapes, choices.

A step draws operands among the variables in scope and adds a statement; it answers whether there
were any that fit.  Floats stay small, so that rounding does not grow: they are multiplied only by
what lies between -1 and 1.  No step is discontinuous in a float.
"""

from __future__ import annotations

from hypothesis import strategies as st

from minijax.testing.strategies.scope import (
    MAX_ELEMENTS,
    Draw,
    Scope,
    Variable,
    elements,
    inserted,
    replaced,
    varying_of,
)

NUMBERS = ("int32", "float32", "uint8")


def pick(draw: Draw, scope: Scope, *dtypes: str, min_rank: int = 0) -> Variable | None:
    """A variable of one of the dtypes, the latest being the simplest; None if there is none."""
    fitting = [v for v in scope.variables if v.dtype in dtypes and v.ndim >= min_rank]
    return draw(st.sampled_from(fitting[::-1])) if fitting else None


def partner(draw: Draw, scope: Scope, x: Variable) -> Variable:
    """A variable of the shape and dtype of `x`, maybe itself."""
    fitting = [v for v in scope.variables if (v.shape, v.dtype) == (x.shape, x.dtype)]
    found: Variable = draw(st.sampled_from(fitting[::-1]))
    return found


def unary(draw: Draw, scope: Scope) -> bool:
    """One operand: its shape, its dtype."""
    x = pick(draw, scope, *NUMBERS)
    if x is None:
        return False
    texts = ["{} + {}", "lax.neg({})"]
    texts += {"float32": ["lax.tanh({})", "{} * 0.5"], "int32": ["{} * {}", "{} % 7"]}.get(
        x.dtype, ["lax.bitwise_not({})"]
    )
    # A literal has part in no type, so that it is the same everywhere.
    form = draw(st.sampled_from([*texts, "{} - 1"]))
    scope.like(form.format(x.name, x.name), x)
    return True


def binary(draw: Draw, scope: Scope) -> bool:
    """Two operands, of whatever variance."""
    x = pick(draw, scope, *NUMBERS)
    if x is None:
        return False
    y = partner(draw, scope, x)
    forms = ["{} + {}", "{} - {}", "lax.max({}, {})", "lax.min({}, {})"]
    forms.append("{} * lax.tanh({})" if x.dtype == "float32" else "{} * {}")
    scope.like(draw(st.sampled_from(forms)).format(x.name, y.name), x, y)
    return True


def compare(draw: Draw, scope: Scope) -> bool:
    """Two integers give a bool."""
    x = pick(draw, scope, "int32")
    if x is None:
        return False
    y = partner(draw, scope, x)
    form = draw(st.sampled_from(["lax.gt({}, {})", "lax.eq({} % 2, {})"]))
    scope.let(form.format(x.name, y.name), (x, y), x.shape, "bool", varying_of(x, y))
    return True


def select(draw: Draw, scope: Scope) -> bool:
    """Each element of one of two arrays."""
    where = pick(draw, scope, "bool")
    if where is None:
        return False
    fitting = [v for v in scope.variables if v.shape == where.shape]
    x = draw(st.sampled_from(fitting[::-1]))
    y = partner(draw, scope, x)
    scope.like(f"lax.select({where.name}, {x.name}, {y.name})", x, y, where)
    return True


def convert(draw: Draw, scope: Scope) -> bool:
    """Another dtype, of what is small."""
    x = pick(draw, scope, "int32", "bool", "uint8")
    if x is None:
        return False
    small = f"{x.name} % 16" if x.dtype == "int32" else x.name
    to = draw(st.sampled_from([d for d in NUMBERS if d != x.dtype]))
    text = f"lax.convert_element_type({small}, np.{to})"
    scope.let(text, [x], x.shape, to, x.varying)
    return True


def reduce(draw: Draw, scope: Scope) -> bool:
    """A reduction over one dimension."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    if x is None:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    form = draw(st.sampled_from(["{}.sum({})", "{}.max({})", "lax.reduce_max({}, ({},))"]))
    if x.dtype != "int32":
        form = "lax.reduce_sum({}, ({},))"
    scope.let(form.format(x.name, dim), [x], replaced(x.shape, dim), x.dtype, x.varying)
    return True


def reshape(draw: Draw, scope: Scope) -> bool:
    """The same elements in another shape."""
    x = pick(draw, scope, *NUMBERS, "bool")
    if x is None:
        return False
    n = elements(x.shape)
    shapes: list[tuple[int, ...]] = [(n,)] if n != 1 else [(1,), ()]
    shapes += [(d, n // d) for d in (2, 4, 8, 3) if n % d == 0 and n > d]
    shape = draw(st.sampled_from(shapes))
    scope.let(f"lax.reshape({x.name}, {shape})", [x], shape, x.dtype, x.varying)
    return True


def rearrange(draw: Draw, scope: Scope) -> bool:
    """The same elements at other places: reversed, transposed."""
    x = pick(draw, scope, *NUMBERS, "bool", min_rank=1)
    if x is None:
        return False
    if x.ndim > 1 and draw(st.booleans()):
        order = tuple(draw(st.permutations(range(x.ndim))))
        shape = tuple(x.shape[d] for d in order)
        scope.let(f"lax.transpose({x.name}, {order})", [x], shape, x.dtype, x.varying)
    else:
        dim = draw(st.integers(0, x.ndim - 1))
        scope.like(f"lax.rev({x.name}, ({dim},))", x)
    return True


def widen(draw: Draw, scope: Scope) -> bool:
    """A new dimension, along which everything is the same."""
    x = pick(draw, scope, *NUMBERS, "bool")
    if x is None or x.ndim > 2:
        return False
    size = draw(st.sampled_from(sorted({2, *scope.sizes.values()})))
    if elements(x.shape) * size > MAX_ELEMENTS:
        return False
    shape = inserted(x.shape, 0, size)
    scope.let(f"lax.broadcast({x.name}, ({size},))", [x], shape, x.dtype, x.varying)
    return True


def join(draw: Draw, scope: Scope) -> bool:
    """Two arrays one after the other."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    if x is None or 2 * elements(x.shape) > MAX_ELEMENTS:
        return False
    y = partner(draw, scope, x)
    dim = draw(st.integers(0, x.ndim - 1))
    text = f"lax.concatenate([{x.name}, {y.name}], {dim})"
    scope.let(text, (x, y), replaced(x.shape, dim, 2 * x.shape[dim]), x.dtype, varying_of(x, y))
    return True


def cut(draw: Draw, scope: Scope) -> bool:
    """A part of an array."""
    x = pick(draw, scope, *NUMBERS, "bool", min_rank=1)
    if x is None:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    stop = draw(st.integers(1, x.shape[dim]))
    start = draw(st.integers(0, stop - 1))
    text = f"lax.slice_in_dim({x.name}, {start}, {stop}, axis={dim})"
    scope.let(text, [x], replaced(x.shape, dim, stop - start), x.dtype, x.varying)
    return True


def look_up(draw: Draw, scope: Scope) -> bool:
    """The part of an array at a place that is computed."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    at = pick(draw, scope, "int32")
    if x is None or at is None or at.ndim:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    text = f"lax.dynamic_index_in_dim({x.name}, {at.name} % {x.shape[dim]}, {dim}, keepdims=False)"
    scope.let(text, (x, at), replaced(x.shape, dim), x.dtype, varying_of(x, at))
    return True


def multiply(draw: Draw, scope: Scope) -> bool:
    """A matrix product."""
    x = pick(draw, scope, "int32", "float32", min_rank=1)
    if x is None:
        return False
    fitting = [
        v
        for v in scope.variables
        if v.dtype == x.dtype and v.ndim in (1, 2) and v.shape[0] == x.shape[-1]
    ]
    if not fitting:
        return False
    y = draw(st.sampled_from(fitting[::-1]))
    shape = (*x.shape[:-1], *y.shape[1:])
    if elements(shape) > MAX_ELEMENTS or len(shape) > 3:
        return False
    left = f"lax.tanh({x.name})" if x.dtype == "float32" else x.name
    dims = f"((({x.ndim - 1},), (0,)), ((), ()))"
    text = f"lax.dot_general({left}, {y.name}, {dims})"
    scope.let(text, (x, y), shape, x.dtype, varying_of(x, y))
    return True


STEPS = (
    binary,
    unary,
    reshape,
    reduce,
    rearrange,
    widen,
    join,
    cut,
    compare,
    select,
    convert,
    look_up,
    multiply,
)
