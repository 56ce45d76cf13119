"""Expressions with functions in them: control flow, transformations, meshes, callbacks.

Input: a program while it is drawn.  Output: an expression; functions are `lambda`s, whose
bodies are expressions of their parameters and of what is in scope around them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tools.fuzz.draw import ALL, Draw, Production, Shape, Value

_ARRAY = range(1, 9)
_DEEPEST = 2
"""How many functions are inside each other at most."""


class Function(NamedTuple):
    """A function, and the type of what it returns."""

    text: str
    result: Value


def function(d: Draw, *types: Value) -> Function:
    """A function of parameters of these types."""
    parameters = d.parameters(*types)
    with d.inside(parameters):
        body = d.expression() if d.functions <= _DEEPEST else same(d, parameters[0])
    return Function(f"lambda {', '.join(p.text for p in parameters)}: {body.text}", body)


def alike(d: Draw, x: Value, *more: Value) -> str:
    """A function whose result has the type of its first parameter."""
    parameters = d.parameters(x, *more)
    with d.inside(parameters, budget=1):
        body = retyped(same(d, parameters[0]), parameters[0])
    return f"lambda {', '.join(p.text for p in parameters)}: {body}"


def retyped(x: Value, like: Value) -> str:
    """An expression converted to the dtype of another."""
    return f"({x.text}).astype({like.text}.dtype)"


def scalar_function(d: Draw, *types: Value) -> str:
    """A function whose result is one number that has derivatives."""
    made = function(d, *types)
    parameters, _, body = made.text.partition(": ")
    kind = made.result.kind
    body = f"jnp.abs({body})" if kind == "c" else body
    if kind in "bui" and d.chance(0.95):
        body = f"jnp.float32({body})"
    if made.result.shape is None and kind == "?":
        body = f"sum(map(jnp.sum, jax.tree.leaves({body})))"
    return f"{parameters}: jnp.sum({body})"


_SAME = {
    "f": (
        "jnp.sin({x})|jnp.tanh({x})|jnp.exp(-jnp.abs({x}))|{x} * {y}|{x} + {y}|{x} - {y}|{x} / 3|"
        "jnp.maximum({x}, {y})|jnp.where({x} > 0, {x}, {y})|{x} * {n}|-{x}|jnp.sqrt(jnp.abs({x}))|"
        "jnp.minimum({x}, {n})|jnp.clip({x}, -1, 2)|nn.relu({x})|jnp.abs({x})|{x} ** 2|"
        "jnp.round({x})"
    ),
    "i": "{x} + {y}|{x} * 2|{x} // 3|{x} % 5|{x} - {y}|jnp.maximum({x}, {y})|abs({x})|{x} ^ {x}",
    "u": "{x} + {y}|{x} * 2|{x} // 3|{x} % 5|{x} - {y}|jnp.minimum({x}, {y})|{x} >> 1",
    "b": "~{x}|{x} & {y}|{x} | {y}|jnp.logical_xor({x}, {y})|{x} == {y}|jnp.where({x}, {y}, {x})",
    "c": "{x} + {y}|{x} * {y}|jnp.conj({x})|jnp.exp({x} * 0.1)|{x} - {n}|-{x}",
}
_SAME_OF_ARRAYS = (
    "jnp.flip({x}, 0)|jnp.roll({x}, 1)|jnp.cumsum({x}, axis=-1)|jnp.sort({x}, axis=0)|"
    "{x}.at[0].set({y}[0])|jnp.tril({x})|{x}[::-1]|lax.rev({x}, (0,))|{x}.at[-1].add(1)"
)


def same(d: Draw, x: Value) -> Value:
    """An expression of the shape and the kind of another."""
    text = x.text
    for _ in range(d.one((1, 1, 2))):
        options = _SAME[x.kind].split("|")
        if x.ndim > 0 and d.chance(0.3):
            options = _SAME_OF_ARRAYS.split("|")
        y = d.value(x.kind, shape=x.shape) if d.chance(0.5) else x
        text = f"({d.one(options).format(x=text, y=y.text, n=d.number('f'))})"
    return x._replace(text=text)


def _rest(x: Value, axis: int = 0) -> Value:
    """The type of one slice along an axis."""
    assert x.shape is not None
    return x._replace(shape=x.shape[:axis] + x.shape[axis + 1 :])


def _stacked(x: Value, size: int, axis: int = 0) -> Shape | None:
    return None if x.shape is None else (*x.shape[:axis], size, *x.shape[axis:])


def _predicate(d: Draw) -> str:
    x = d.value("if")
    return d.one((f"jnp.sum({x.text}) > 0", f"jnp.any({x.text} > 1)"))


def jitted(d: Draw) -> Value:
    """A compiled call."""
    x, y = d.value(), d.value()
    made = function(d, x, y)
    how = d.one(("{f})({x}, {y})",) * 3 + (
        "{f}, inline=True)({x}, {y})",
        "{f}, keep_unused=True)({x}, {y})",
        "{f}).lower({x}, {y}).compile()({x}, {y})",
        "{f}).trace({x}, {y}).lower().compile()({x}, {y})",
        "{f}).eval_shape({x}, {y})",
    ))  # fmt: skip
    text = "jax.jit(" + how.format(f=made.text, x=x.text, y=y.text)
    return made.result._replace(text=text) if "eval" not in how else Value(text, None, "?")


def batched(d: Draw) -> Value:
    """A batched call."""
    x, y = d.value(ranks=_ARRAY), d.value()
    axis = d.random.randrange(x.ndim)
    assert x.shape is not None
    size = x.shape[axis]
    is_shared = y.shape is None or y.ndim == 0 or y.shape[0] != size or d.chance(0.3)
    with_axis = d.chance(0.2)
    made = function(d, _rest(x, axis), y if is_shared else _rest(y))
    body = made.text
    if with_axis and made.result.kind in "if":
        parameters, _, body = made.text.partition(": ")
        body = f"{parameters}: lax.{d.one(('psum', 'pmax', 'pmean', 'all_gather'))}({body}, 'i')"
    more = ", axis_name='i'" if with_axis else ""
    if d.chance(0.15) and made.result.ndim > 0 and not with_axis:
        more += ", out_axes=-1"
    in_axes = f"({axis}, {None if is_shared else 0})"
    text = f"jax.vmap({body}, in_axes={in_axes}{more})({x.text}, {y.text})"
    shape = None if more else _stacked(made.result, size)
    return Value(text, shape, made.result.kind)


def gradient(d: Draw) -> Value:
    """A derivative of a function of one number."""
    x, y = d.value("f"), d.value()
    f = scalar_function(d, x, y)
    how = d.one((
        "jax.grad({f})({x}, {y})",
        "jax.grad({f})({x}, {y})",
        "jax.jit(jax.grad({f}))({x}, {y})",
        "jax.value_and_grad({f})({x}, {y})",
        "jax.grad(jax.checkpoint({f}))({x}, {y})",
        "jax.grad(lambda p, q: jnp.sum(jax.grad({f})(p, q) ** 2))({x}, {y})",
        "jax.jvp(jax.grad({f}), ({x}, {y}), ({x}, jax.numpy.zeros_like({y})))",
    ))  # fmt: skip
    text = how.format(f=f, x=x.text, y=y.text)
    is_array = "value_and" not in how and "jvp" not in how
    return x._replace(text=text) if is_array else Value(text, None, "?")


def derivative(d: Draw) -> Value:
    """A derivative of a function of an array."""
    x = d.value("f")
    f = function(d, x).text
    how = d.one((
        "jax.jvp({f}, ({x},), (jnp.ones_like({x}),))",
        "jax.linearize({f}, {x})[1](jnp.ones_like({x}))",
        "jax.vjp({f}, {x})[1](({f})({x}))",
        "jax.jacfwd({f})({x})",
        "jax.jacrev({f})({x})",
        "jax.vmap(jax.grad(lambda p: jnp.sum(({f})(p).real)))(jnp.stack([{x}, {x}]))",
        "jax.hessian(lambda p: jnp.sum(({f})(p).real))({x})",
    ))  # fmt: skip
    return Value(how.format(f=f, x=x.text), None, "?")


def scanned(d: Draw) -> Value:
    """A scan, whose carry keeps its type."""
    carry, xs = d.value(), d.value(ranks=_ARRAY)
    parameters = d.parameters(carry, _rest(xs))
    with d.inside(parameters, budget=1):
        step = d.value(carry.kind, shape=carry.shape)
        kept = same(d, parameters[0])
        seen = d.expression() if d.functions <= _DEEPEST else same(d, parameters[1])
    if carry.kind in "iuf" and carry.kind == step.kind:
        kept = kept._replace(text=f"{kept.text} + {step.text}")
    f = f"lambda {parameters[0].text}, {parameters[1].text}: "
    f += f"({retyped(kept, parameters[0])}, {seen.text})"
    more = d.one(("", "", "", ", reverse=True", ", unroll=2"))
    text = f"lax.scan({f}, {carry.text}, {xs.text}{more})"
    assert xs.shape is not None
    if d.chance(0.5):
        return Value(f"{text}[0]", carry.shape, carry.kind)
    return Value(f"{text}[1]", _stacked(seen, xs.shape[0]), seen.kind)


def looped(d: Draw) -> Value:
    """A loop over an index, or while something holds."""
    x = d.value()
    parameter = d.parameters(Value("", (), "i"), x)
    with d.inside(parameter, budget=1):
        body = retyped(same(d, parameter[1]), parameter[1])
    i, c = (p.text for p in parameter)
    if d.chance(0.5):
        text = f"lax.fori_loop(0, {d.one(('3', '0', '2'))}, lambda {i}, {c}: {body}, {x.text})"
        return x._replace(text=text)
    loop = (
        f"lax.while_loop(lambda s: s[0] < 3, lambda s: (lambda {i}, {c}: ({i} + 1, {body}))(*s), "
    )
    return x._replace(text=f"{loop}(0, {x.text}))[1]")


def conditional(d: Draw) -> Value:
    """A choice between functions of one type."""
    x = d.value()
    branches = [alike(d, x) for _ in range(3)]
    if d.chance(0.6):
        text = f"lax.cond({_predicate(d)}, {branches[0]}, {branches[1]}, {x.text})"
    else:
        index = d.value("i", range(1)).text
        text = f"lax.switch({index}, [{', '.join(branches)}], {x.text})"
    return x._replace(text=text)


def mapped(d: Draw) -> Value:
    """A function of each slice, or a combination of all from the left."""
    x = d.value(ranks=_ARRAY)
    assert x.shape is not None
    if d.chance(0.4):
        kinds = {"b": "logical_or", "c": "add"}
        name = kinds.get(x.kind) or d.one(("add", "multiply", "maximum"))
        more = d.one(("", ", reverse=True", ", axis=-1"))
        return x._replace(text=f"lax.associative_scan(jnp.{name}, {x.text}{more})")
    made = function(d, _rest(x))
    more = d.one(("", "", ", batch_size=2"))
    text = f"lax.map({made.text}, {x.text}{more})"
    return Value(text, _stacked(made.result, x.shape[0]), made.result.kind)


def with_rule(d: Draw) -> Value:
    """A function with a derivative of its own, and its derivative."""
    x = d.value("f")
    f, c = alike(d, x), d.parameters(x)[0].text
    how = d.one((
        "jax.custom_gradient(lambda {c}: (({f})({c}), lambda g: g * 2))",
        "(lambda h: (h.defvjp(lambda {c}: (({f})({c}), {c}), lambda r, g: (g * r,)), h)[1])"
        "(jax.custom_vjp({f}))",
        "(lambda h: (h.defjvp(lambda p, t: (h(*p), t[0] * 3)), h)[1])(jax.custom_jvp({f}))",
        "jax.checkpoint({f})",
        "jax.custom_batching.sequential_vmap({f})",
    ))  # fmt: skip
    made = how.format(f=f, c=c)
    use = d.one((
        "({f})({x})",
        "jax.grad(lambda p: jnp.sum(({f})(p)))({x})",
        "jax.jvp({f}, ({x},), ({x},))[1]",
        "jax.jit({f})({x})",
        "jax.vmap({f})(jnp.stack([{x}, {x}]))[0]",
        "jax.vmap(jax.grad(lambda p: jnp.sum(({f})(p))))(jnp.stack([{x}, {x}]))[1]",
    ))  # fmt: skip
    return x._replace(text=use.format(f=made, x=x.text))


def called_back(d: Draw) -> Value:
    """A call of Python from a program."""
    x = d.value("fi")
    struct = f"jax.ShapeDtypeStruct({x.text}.shape, {x.text}.dtype)"
    c = d.parameters(x)[0].text
    text = f"jax.pure_callback(lambda u: np.negative(u), {struct}, {c}"
    if d.chance(0.4):
        how = d.one(("sequential", "expand_dims", "broadcast_all"))
        shape = f"jax.ShapeDtypeStruct({c}.shape, {c}.dtype)"
        text = f"jax.pure_callback(lambda u: np.negative(u), {shape}, {c}, vmap_method='{how}')"
        return x._replace(text=f"jax.vmap(lambda {c}: {text})(jnp.stack([{x.text}]))[0]")
    return x._replace(text=f"jax.jit(lambda {c}: {text}))({x.text})")


_SPECS = {1: ("P('a')", "P(('a', 'b'))", "P()"), 2: ("P('a', 'b')", "P('b')", "P(None, 'a')")}
_DIVISIBLE = ((4,), (8,), (4, 2), (2, 4), (4, 4))


def _over_devices(d: Draw, kinds: str = ALL) -> tuple[Value, str]:
    """A value that can be cut over the mesh, and how."""
    shape = d.one(_DIVISIBLE)
    specs = _SPECS[len(shape)]
    return d.value(kinds, shape=shape), d.one(
        specs if shape != (4, 2) else ("P('a', 'b')", "P('b')")
    )


def placed(d: Draw) -> Value:
    """A value cut over a mesh, or a program whose results are."""
    x, spec = _over_devices(d)
    mesh = "mesh" if d.chance(0.8) else "typed_mesh"
    sharding = f"NamedSharding({mesh}, {spec})"
    if d.chance(0.4):
        return x._replace(text=f"jax.device_put({x.text}, {sharding})")
    f = alike(d, x)
    how = d.one((
        "jax.jit({f}, out_shardings={s})({x})",
        "jax.jit({f}, in_shardings={s})({x})",
        "jax.jit({f})(jax.device_put({x}, {s}))",
        "jax.jit(lambda p: lax.with_sharding_constraint(({f})(p), {s}))({x})",
        "jax.vmap({f})(jnp.stack([jax.device_put({x}, {s})] * 2))[0]",
    ))  # fmt: skip
    return x._replace(text=how.format(f=f, x=x.text, s=sharding))


_COLLECTIVES = (
    "lax.psum({x}, 'a')|lax.pmean({x}, 'a')|lax.pmax({x}, 'a')|lax.pmin({x}, 'a')|"
    "lax.ppermute({x}, 'a', [(0, 1)])|lax.ppermute({x}, 'a', [(0, 1), (1, 0)])|"
    "lax.all_gather({x}, 'a', tiled=True)|lax.psum_scatter({x}, 'a', tiled=True)|"
    "lax.all_to_all({x}, 'a', 0, 0, tiled=True)|{x} * lax.axis_index('a')|{x} + lax.axis_size('a')"
)


def per_device(d: Draw) -> Value:
    """A function of the block of each device."""
    x = d.value("fi", shape=d.one(((4,), (8,), (4, 2), (8, 4))))
    assert x.shape is not None
    block = x._replace(shape=(x.shape[0] // 2, *x.shape[1:]))
    (p,) = d.parameters(block)
    with d.inside([p], budget=1):
        text = d.one(_COLLECTIVES.split("|")).format(x=same(d, p).text)
    more = d.one(("", "", ", check_vma=False"))
    specs = f"mesh=mesh, in_specs=P('a'), out_specs={d.one(('P(`a`)', 'P(`a`)', 'P()'))}"
    f = f"jax.shard_map(lambda {p.text}: {text}, {specs}{more})".replace("`", "'")
    how = d.one((
        "{f}({x})",
        "jax.jit({f})({x})",
        "jax.grad(lambda v: jnp.sum({f}(v)))({x})",
        "jax.vmap({f})(jnp.stack([{x}, {x}]))",
        "jax.jvp({f}, ({x},), ({x},))",
    ))  # fmt: skip
    return Value(how.format(f=f, x=x.text), None, x.kind)


def replicated(d: Draw) -> Value:
    """A function of each slice, on a device of its own."""
    x = d.value("fi", shape=d.one(((4,), (2,), (4, 3), (2, 4))))
    rest = _rest(x)
    (p,) = d.parameters(rest)
    with d.inside([p], budget=1):
        text = same(d, p).text
    name = d.one(("psum", "pmax", "pmin", "pmean"))
    text = f"lax.{name}({text}, 'i')" if d.chance(0.5) else text
    return x._replace(text=f"jax.pmap(lambda {p.text}: {text}, axis_name='i')({x.text})")


def shallow(production: Production, instead: Production) -> Production:
    """A production that draws another one where functions are deep inside each other."""
    return lambda d: (production if d.functions < _DEEPEST else instead)(d)


PRODUCTIONS = {
    jitted: 3,
    batched: 3,
    gradient: 4,
    derivative: 3,
    scanned: 3,
    looped: 2,
    conditional: 2,
    mapped: 1,
    with_rule: 2,
    called_back: 1,
}
"""What draws functions that may stand anywhere, and how often."""

OF_DEVICES = {placed: 2, per_device: 2, replicated: 1}
"""As `PRODUCTIONS`, of several devices: they stand alone."""


def alone(production: Production, instead: Production) -> Production:
    """A production that draws another one inside functions."""
    return lambda d: (production if d.functions == 0 else instead)(d)


def productions(call: Production) -> tuple[Production, ...]:
    """All productions, in which half are calls."""
    listed = [shallow(made, call) for made, count in PRODUCTIONS.items() for _ in range(count)]
    listed += [alone(made, call) for made, count in OF_DEVICES.items() for _ in range(count)]
    return (*listed, *[call] * int(np.ceil(1.2 * len(listed))))
