"""Sizes that are symbols: their arithmetic, and programs for all sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import export, lax

B, N = export.symbolic_shape("b, n", constraints=["n >= 2"])
Inconclusive = jax.errors.InconclusiveDimensionOperation


def described(*shape):
    return jax.ShapeDtypeStruct(shape, np.float32)


def sizes_of(shape, b, n):
    names = {"b": b, "n": n}
    return [d.polynomial.number(names) if export.is_symbolic_dim(d) else d for d in shape]


def values(specs, b, n):
    chance = np.random.default_rng(b * 100 + n)
    return [chance.standard_normal(sizes_of(s.shape, b, n)).astype(np.float32) for s in specs]


def check(function, specs, sizes):
    """Exported once with symbols is traced anew for each of the sizes."""
    program = export.export(jax.jit(function))(*specs)
    for b, n in sizes:
        args = values(specs, b, n)
        expected = jax.jit(function)(*args)
        for one, two in zip(
            jax.tree.leaves(program.call(*args)), jax.tree.leaves(expected), strict=True
        ):
            np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-5)
        shapes = [sizes_of(a.shape, b, n) for a in program.out_avals]
        assert shapes == [list(x.shape) for x in jax.tree.leaves(expected)]


# fmt: off
PROGRAMS = {
    "elementwise": (lambda x, y: jnp.sin(x) * 2 + y, [(B, N), (N,)]),
    "sums": (lambda x: (x.sum(0), x.mean(), x.max(1), jnp.var(x, 0)), [(B, N)]),
    "products": (lambda x, y: x @ y + jnp.einsum("bn,nc->bc", x, y), [(B, N), (N, B)]),
    "reshape": (lambda x: (x.reshape(-1), x.reshape(x.shape[0], -1, 2)), [(B, 2 * N)]),
    "parts": (lambda x: (x[1:, :2], x[::-1].T, x[None], x[..., -1]), [(B + 1, N)]),
    "joined": (lambda x: (jnp.concatenate([x, x]), jnp.stack([x, x]), jnp.tile(x, (2, 1))),
        [(B, N)]),
    "counting": (lambda x: (jnp.arange(x.shape[0]) * x.shape[1], jnp.linspace(0, 1, x.shape[1])),
        [(B, N)]),
    "gathered": (lambda x: (x[jnp.array([0, 1])], jnp.take(x, jnp.arange(x.shape[1]), 1)),
        [(B + 1, N)]),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.logsumexp(x, 1)), [(B, N)]),
    "gradient": (lambda x: jax.grad(lambda y: (jnp.sin(y) * y).mean())(x), [(B, N)]),
    "mapped": (lambda x: jax.vmap(lambda row: row @ row)(x), [(B, N)]),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(x.shape[1]), x), [(B, N)]),
    "loop": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + jnp.asarray(x)[i],
        jnp.zeros(x.shape[1])),
        [(B, N)]),
    "sorted": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argmax(x, 1), lax.top_k(x, 1)),
        [(B, N)]),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 1)), [(B, N)]),
    "chosen": (lambda x: jnp.where(x > 0, x, 0.0), [(B, N)]),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, x.shape[1]))), [(B, N)]),
    "triangles": (lambda x: (jnp.tril(x), jnp.eye(x.shape[1]), jnp.diag(x @ x.T)), [(B, N)]),
    "convolution": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), [(B, 2, N, 4), (3, 2, 2, 2)]),
    "updated": (lambda x: jnp.asarray(x).at[0].set(1.0), [(B, N)]),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), [(B, N)]),
    "attention": (lambda q, k: jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[1])) @ k,
        [(B, N), (N, N)]),
    "factors": (lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(x.shape[0])), [(B, N)]),
    "windows": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID"),
        [(B, N)]),
    "segments": (lambda x: jax.ops.segment_sum(x, jnp.zeros(x.shape[0], int), num_segments=3),
        [(B, N)]),
    "branches": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), [(B, N)]),
    "repeated": (lambda x: (jnp.repeat(x, 2, axis=0), jnp.roll(x, 1, 0), jnp.median(x, 0)),
        [(B, N)]),
}
# fmt: on


@pytest.mark.feature("EX-04")
@pytest.mark.parametrize("name", PROGRAMS)
def test_exported_once_is_traced_for_each_size(name):
    function, shapes = PROGRAMS[name]
    check(function, [described(*shape) for shape in shapes], [(1, 2), (3, 4), (8, 3)])


_STEPS = {
    "sin": jnp.sin,
    "row": lambda x: x * jnp.arange(x.shape[1], dtype=x.dtype),
    "centre": lambda x: x - x.mean(0),
    "scale": lambda x: x / (x.shape[0] + 1),
    "transpose": lambda x: x.T,
    "join": lambda x: jnp.concatenate([x, x[:1]]),
    "tail": lambda x: jnp.concatenate([x, x])[1:],
    "square": lambda x: jnp.tanh(x @ x.T),
    "flat": lambda x: x.reshape(1, -1),
    "column": lambda x: x.reshape(-1, 1),
    "pad": lambda x: jnp.pad(x, ((0, 1), (1, 0))),
    "flip": lambda x: x[::-1],
    "soft": jax.nn.softmax,
    "sum": lambda x: x.sum(1, keepdims=True) + x,
    "pick": lambda x: x[jnp.zeros(x.shape[0], int)],
    "mask": lambda x: jnp.where(jnp.tri(*x.shape, dtype=bool), x, 0),
}


@pytest.mark.turns(3)
@pytest.mark.feature("EX-04")
@given(
    steps=st.lists(st.sampled_from(sorted(_STEPS)), min_size=1, max_size=4),
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(2, 6)), min_size=1, max_size=2),
)
def test_random_programs_for_random_sizes(steps, sizes):
    # Products of products grow too fast to be computed.
    steps = [s for i, s in enumerate(steps) if s != "square" or "square" not in steps[:i]]

    def function(x):
        for step in steps:
            x = _STEPS[step](x)
        return x

    # A scope of its own: what other programs have computed with it would know, too.
    check(function, [described(*export.symbolic_shape("b, n", constraints=["n >= 2"]))], sizes)


@pytest.mark.feature("EX-04")
def test_arithmetic_of_dimensions():
    a, b = export.symbolic_shape("a, b", constraints=["a >= 4", "mod(b, 8) == 0"])
    assert str(2 * a + b * b - 1) == "b^2 + 2*a - 1"
    assert (6 * a * b) // (2 * a) == 3 * b
    assert str((a + 5) // 2) == "floordiv(a + 5, 2)"
    assert (4 * a + 3) % 4 == 3
    assert b % 8 == 0
    assert (a >= 4, a > 3, a < 4, a + b >= 5) == (True, True, False, True)
    assert a != b
    assert a - a == 0
    assert isinstance(a, int)
    assert bool(a)
    assert str(-a) == "- a"
    for question in (lambda: a > b, lambda: a >= 5, lambda: bool(a - 4), lambda: int(a)):
        with pytest.raises(Inconclusive, match=r"inconclusive|requires a constant"):
            question()
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        a + B
    with pytest.raises(ZeroDivisionError):
        a // 0


@pytest.mark.feature("EX-04")
@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: x[1:], "b*n - n"),
        (lambda x: jnp.concatenate([x, x])[1:], "2*b*n - n"),
        (lambda x: x[1:, :-1], "b*n - n - b + 1"),
        (lambda x: x[: x.shape[0] - 1], "b*n - n"),
        (lambda x: x[-3:], "3*n"),
    ],
)
def test_sizes_of_slices_are_symbols(function, size):
    # A scope of its own: what others have computed with it knows, too.
    b, n = export.symbolic_shape("b, n")
    flat = lambda x: function(x).reshape(-1) * function(x).shape[1]
    program = export.export(jax.jit(flat))(described(b, n))
    assert str(program.out_avals[0].shape[0]) == size
    x = np.arange(42, dtype=np.float32).reshape(7, 6)
    np.testing.assert_array_equal(program.call(x), flat(jnp.asarray(x)))


@pytest.mark.feature("EX-04")
def test_dimensions_are_written_as_in_jax():
    b, c, d = export.symbolic_shape("b, c, d")
    written = {
        "c + b": b + c,
        "- c - b": -b - c,
        "- b + 3": 3 - b,
        "2*b*c + c^2 + b^2": (b + c) ** 2,
        "- 2*b*c + 5": 5 - 2 * b * c,
        "mod(c, 3) + floordiv(b, 2)": b // 2 + c % 3,
        "mod(c, 2) + b^4": c % 2 + b**4,
        "- floordiv(b, 2) + 1": 1 - b // 2,
        "c*d + b*d + b*c": b * c + c * d + b * d,
        "b*c*d + b*c^2 + b^2*c + d^3": b * b * c + b * c * c + d**3 + b * c * d,
    }
    assert list(map(str, written.values())) == list(written)
    for text, size in written.items():
        assert export.symbolic_shape(text, scope=b.scope) == (size,)


@pytest.mark.feature("EX-04")
def test_floats_of_sizes_are_computed_by_programs():
    functions = (
        lambda x: x * (x.shape[0] + 1.5),
        lambda x: x * (x.shape[0] - 0.1),
        lambda x: x * (2.5 - x.shape[0]),
        lambda x: x * (0.1 + x.shape[0]),
        lambda x: x * (0.3 * x.shape[0]),
        lambda x: x * (x.shape[0] / 2),
        lambda x: x.sum() / x.shape[0],
    )
    for function in functions:
        check(function, [described(N, 3)], [(1, 2), (1, 5)])
    for outside in (lambda: N + 1.5, lambda: N / 2):
        with pytest.raises(NotImplementedError, match="a symbol, of which only programs make"):
            outside()


@pytest.mark.feature("EX-04")
@given(st.integers(1, 30), st.integers(2, 30))
def test_arithmetic_agrees_with_numbers(b, n):
    formulas = (
        lambda b, n: (b + n) * (b - n) + 7,
        lambda b, n: (b * 6 + 5) // 3 % 4,
        lambda b, n: (b * n + n) // n,
        lambda b, n: 17 - b // 2 + n % 5,
        lambda b, n: (b + 3 * n) ** 2 // 9,
        lambda b, n: -b // 4,
    )
    for formula in formulas:
        symbol = formula(B, N)
        size = symbol.polynomial if export.is_symbolic_dim(symbol) else None
        assert (size.number({"b": b, "n": n}) if size else symbol) == formula(b, n)
        if size is not None:
            (again,) = export.symbolic_shape(str(symbol), scope=B.scope)
            assert again == symbol


@pytest.mark.feature("EX-04")
def test_shapes_are_read():
    read = export.symbolic_shape
    a, b = read("a, b")
    scope = a.scope
    assert read("(a, 2*b + 1, 3, a^2)", scope=scope) == (a, 2 * b + 1, 3, a * a)
    assert read("_, a, ...", scope=scope, like=(5, 6, 7, 8)) == (5, a, 7, 8)
    assert read("max(a, 1), min(a, 0)", scope=scope) == (a, 0)
    assert read("") == ()
    assert str(read("floordiv(a, 2), mod(a, 3)")) == "(floordiv(a, 2), mod(a, 3))"
    for text in ("a b", "a,, b", "a / 2", "sin(a)", "_", "...", "a^b", "(a"):
        with pytest.raises(ValueError, match="syntax error in symbolic shape"):
            read(text)
    with pytest.raises(ValueError, match="dimension 0 is 4, and not 5"):
        read("4, a", like=(5, 6))
    with pytest.raises(ValueError, match="cannot both be given"):
        read("a", constraints=["a >= 2"], scope=scope)
    for constraint in ("a > 4", "a == b + 1 == c", "2*a == b"):
        with pytest.raises(ValueError, match="constraint"):
            export.SymbolicScope([constraint])


@pytest.mark.feature("EX-04")
def test_descriptions_of_arguments():
    args = {"x": np.zeros((4, 3), np.float32), "y": np.zeros(3, np.int32)}
    specs = export.symbolic_args_specs(args, {"x": "b, _", "y": None})
    assert str(specs["x"].shape) == "(b, 3)"
    assert specs["y"].shape == (3,)
    (spec,) = export.symbolic_args_specs((np.zeros((2, 3)),), "b, c", constraints=["b >= 2"])
    assert spec.shape[0] >= 2


@pytest.mark.feature("EX-04")
def test_sizes_that_do_not_fit_are_named():
    program = export.export(jax.jit(lambda x, y: x.sum() + y.sum()))(
        described(B, N), described(2 * N)
    )
    again = export.deserialize(program.serialize())
    for one in (program, again):
        with pytest.raises(ValueError, match=r"args\[1\]\.shape\[0\] is 5, where .* for 2\*n"):
            one.call(np.zeros((1, 3), np.float32), np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="constraint does not hold"):
        program.call(np.zeros((1, 1), np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="cannot be compiled for these sizes"):
        again.call(np.zeros((1, 1), np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="Cannot solve for values of dimension variables"):
        export.export(jax.jit(jnp.sin))(described(B * N))


@pytest.mark.feature("EX-04")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * np.arange(x.shape[1]),
        lambda x: x * np.sqrt(np.float32(x.shape[0])),
        lambda x: sum(x[:, i] for i in range(x.shape[1] // 64)),
    ],
)
def test_what_takes_a_symbol_for_a_number_is_refused(function):
    with pytest.raises(Inconclusive):
        export.export(jax.jit(function))(described(B, N))


@pytest.mark.feature("EX-04")
def test_symbolic_programs_have_derivatives_and_call_each_other():
    program = export.export(jax.jit(lambda x: (jnp.sin(x) * x.shape[0])[1:].reshape(-1)))(
        described(N, 4)
    )
    again = export.deserialize(program.serialize(vjp_order=1))
    x = np.ones((3, 4), np.float32)
    slope = jax.grad(lambda x: again.call(x).sum())(x)
    np.testing.assert_allclose(slope[1:], 3 * np.cos(x[1:]), rtol=1e-6)
    (m,) = export.symbolic_shape("m", constraints=["m >= 2"])
    outer = export.export(jax.jit(lambda x: again.call(x) + 1))(described(m, 4))
    assert str(outer.out_avals[0].shape) == "(4*m - 4,)"
    np.testing.assert_allclose(outer.call(x), again.call(x) + 1)
