"""jit, grad, vmap and a named psum in one file, built in five steps.

    1  operations, and the trace that decides what they do
    2  jit: a function becomes a program, and the program is compiled
    3  jvp: every value carries a tangent
    4  grad: partial evaluation leaves a linear program, which runs backwards
    5  vmap: every value carries a batch, whose axis may have a name

Read it from top to bottom.  Values are NumPy arrays of float32, and the machine code is Python;
the rest is as in minijax, and so are the programs that come out.
"""

import contextlib
import functools
import itertools
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Value = Any  # an array, a number, or a Tracer that stands for one

# Step 1.  An operation does nothing by itself: it asks the current trace.  The first trace
# computes.  Those below call your function with tracers, and so see every operation that it does.


class Tracer:
    """Stands for an array while a function is transformed: its shape, and what its trace knows."""

    __array_ufunc__ = None  # NumPy leaves `array * tracer` to us

    def __init__(self, trace: "Trace", shape: Shape, known: Any) -> None:
        self.trace, self.shape, self.known = trace, shape, known

    def __bool__(self) -> bool:
        raise TypeError("a tracer has a shape but no numbers: its truth is not known yet")


def shape_of(x: Value) -> Shape:
    """The shape of an array, a number or a tracer."""
    return x.shape if isinstance(x, Tracer) else np.shape(x)


class Trace:
    """Decides what operations do.  Most traces lie inside another one, their parent."""

    def __init__(self, parent: "Trace | None" = None) -> None:
        self.parent = parent

    def process(self, primitive: "Primitive", args: Sequence[Value], params: dict) -> list[Value]:
        """The results of one operation."""
        raise NotImplementedError

    def owns(self, x: Value) -> bool:
        """Whether a value is a tracer of this trace; other values are constants to it."""
        return isinstance(x, Tracer) and x.trace is self


class EvalTrace(Trace):
    """Computes at once."""

    def process(self, primitive, args, params):
        return primitive.compute(*(np.asarray(x, np.float32) for x in args), **params)


current: Trace = EvalTrace()


@contextlib.contextmanager
def running(trace: Trace) -> Iterator[None]:
    """Makes a trace the current one for a while."""
    global current  # noqa: PLW0603  the one thing that changes
    before, current = current, trace
    try:
        yield
    finally:
        current = before


class Primitive:
    """An operation: a name, and how it is computed.  Each step below adds a table of rules."""

    def __init__(self, name: str, compute: Callable[..., list[Value]]) -> None:
        self.name = self.__name__ = name  # the second is for jit(sin)
        self.compute = compute

    def bind(self, *args: Value, **params: Any) -> list[Value]:
        """Does the operation, whatever that is at present; gives a list of results."""
        return current.process(self, args, params)

    def __call__(self, *args: Value, **params: Any) -> Value:
        return self.bind(*args, **params)[0]


def elementwise(name: str, function: Callable) -> Primitive:
    """An operation on one or two arrays of one shape, number by number; scalars stretch."""
    return Primitive(name, lambda *args: [function(*args)])


def _broadcast(x, *, shape, broadcast_dimensions):
    sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
    return [np.broadcast_to(x.reshape([sizes.get(n, 1) for n in range(len(shape))]), shape)]


sin, cos = elementwise("sin", np.sin), elementwise("cos", np.cos)
exp, log = elementwise("exp", np.exp), elementwise("log", np.log)
neg, tanh = elementwise("neg", np.negative), elementwise("tanh", np.tanh)
add, sub = elementwise("add", np.add), elementwise("sub", np.subtract)
mul, div = elementwise("mul", np.multiply), elementwise("div", np.divide)
add_any = elementwise("add_any", np.add)  # the sum of two tangents
ELEMENTWISE = (sin, cos, exp, log, neg, tanh, add, sub, mul, div, add_any)
reduce_sum = Primitive("reduce_sum", lambda x, *, axes: [np.sum(x, axes)])
broadcast_in_dim = Primitive("broadcast_in_dim", _broadcast)

for _name, _primitive in {"add": add, "sub": sub, "mul": mul, "truediv": div}.items():
    setattr(Tracer, f"__{_name}__", lambda x, y, do=_primitive: do(x, y))
    setattr(Tracer, f"__r{_name}__", lambda x, y, do=_primitive: do(y, x))
Tracer.__neg__ = lambda x: neg(x)  # noqa: PLW0108  a primitive is no method


def sum(x: Value, axis: int | None = None) -> Value:  # noqa: A001  NumPy's name
    """The sum of an array, or along one of its axes."""
    return reduce_sum(x, axes=tuple(range(len(shape_of(x)))) if axis is None else (axis,))


def broadcast(x: Value, shape: Shape, dims: Shape = ()) -> Value:
    """Repeats an array to a larger shape, in which its axes are at `dims`."""
    same = shape_of(x) == shape
    return x if same else broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


# Step 2.  A staging trace computes nothing: it writes each operation down as an equation.  What it
# wrote is a program, a jaxpr, which can be printed, evaluated, compiled and transformed.

shape_rules: dict[Primitive, Callable] = {
    **dict.fromkeys(ELEMENTWISE, lambda *shapes: [np.broadcast_shapes(*shapes)]),
    reduce_sum: lambda x, *, axes: [tuple(s for n, s in enumerate(x) if n not in axes)],
    broadcast_in_dim: lambda x, *, shape, broadcast_dimensions: [shape],
}


class Var:
    """A variable of a program."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


class Equation:
    """One operation of a program.  It takes variables and values, and gives variables."""

    def __init__(self, primitive: Primitive, params: dict, takes: list, gives: list[Var]) -> None:
        self.primitive, self.params, self.takes, self.gives = primitive, params, takes, gives

    def replace(self, new: Callable[[Any], Any]) -> "Equation":
        """The equation with other things in the place of what it takes."""
        return Equation(self.primitive, self.params, list(map(new, self.takes)), self.gives)


class Jaxpr:
    """A program: the variables that it takes, its equations in order, and what it returns."""

    def __init__(self, takes: list[Var], equations: list[Equation], returns: list) -> None:
        self.takes, self.equations, self.returns = takes, equations, returns

    def __str__(self) -> str:
        used = {x for x in self.returns if isinstance(x, Var)}
        used |= {x for e in self.equations for x in e.takes if isinstance(x, Var)}
        names, lines = Names(), []
        head = f"{{ lambda ; {' '.join(map(names.typed, self.takes))}. let"
        for e in self.equations:
            gives = [names.typed(x) if x in used else f"_{type_of(x)}" for x in e.gives]
            does = [e.primitive.name + text_of(e.params), *map(names, e.takes)]
            lines.append(f"{' '.join(gives)} = {' '.join(does)}")
        tail = f"in ({', '.join(map(names, self.returns))}{',' * (len(self.returns) == 1)}) }}"
        body = "\n".join(lines)
        if "\n" in body:
            return f"{head}\n{indented(body, 4)}\n  {tail}"
        return " ".join([head, *lines, tail])


class Names:
    """Names variables a, b, ..., z, aa, ... in the order in which it meets them."""

    def __init__(self) -> None:
        letters = (itertools.product(string.ascii_lowercase, repeat=n) for n in itertools.count(1))
        self.free, self.given = map("".join, itertools.chain.from_iterable(letters)), {}

    def __call__(self, x: Any) -> str:
        if not isinstance(x, Var):
            return f"{np.asarray(x).tolist():}{type_of(x)}"
        if x not in self.given:
            self.given[x] = next(self.free)
        return self.given[x]

    def typed(self, x: Var) -> str:
        """The name of a variable with its type."""
        return self(x) + type_of(x)


def type_of(x: Any) -> str:
    """The type as programs show it."""
    return f":f32[{','.join(map(str, x.shape if isinstance(x, Var) else np.shape(x)))}]"


def text_of(params: dict) -> str:
    """Parameters, without those that the type of the result tells."""
    shown = [f"{name}={x}" for name, x in params.items() if name != "shape" and x != ()]
    if "jaxpr" in params:
        return "[\n" + indented("\n".join(shown), 2) + "\n]"
    return f"[{' '.join(shown)}]" if shown else ""


def indented(text: str, by: int) -> str:
    """Text moved to the right."""
    return "\n".join(" " * by + line for line in text.splitlines())


class StagingTrace(Trace):
    """Writes operations down."""

    def __init__(self, parent: Trace | None = None) -> None:
        super().__init__(parent)
        self.equations: list[Equation] = []

    def new(self, shape: Shape) -> Tracer:
        """A tracer for a new variable."""
        return Tracer(self, shape, Var(shape))

    def atom(self, x: Value) -> Any:
        """What an equation takes: the variable of one of our tracers, or a value."""
        if self.parent is None and isinstance(x, Tracer) and not self.owns(x):
            raise TypeError("jit: the function uses a tracer from outside; make it an argument")
        return x.known if self.owns(x) else x

    def process(self, primitive, args, params):
        gives = [self.new(s) for s in shape_rules[primitive](*map(shape_of, args), **params)]
        takes = [self.atom(x) for x in args]
        self.equations.append(Equation(primitive, params, takes, [x.known for x in gives]))
        return gives


def stage(function: Callable[..., list], shapes: Sequence[Shape]) -> Jaxpr:
    """The program of a function that returns a list."""
    trace = StagingTrace()
    args = [trace.new(shape) for shape in shapes]
    with running(trace):
        returns = [trace.atom(x) for x in function(*args)]
    return Jaxpr([x.known for x in args], trace.equations, returns)


def evaluate(jaxpr: Jaxpr, *args: Value) -> list[Value]:
    """Hands each equation of a program to the current trace."""
    values: dict[Var, Value] = dict(zip(jaxpr.takes, args, strict=True))

    def read(x: Any) -> Value:
        return values[x] if isinstance(x, Var) else x

    for e in jaxpr.equations:
        results = e.primitive.bind(*map(read, e.takes), **e.params)
        values.update(zip(e.gives, results, strict=True))
    return [read(x) for x in jaxpr.returns]


def written(jaxpr: Jaxpr) -> tuple[str, dict[str, Any]]:
    """A program as Python code, with what its names stand for: no trace, no rule, no tracer."""
    names, scope = Names(), {}

    def word(x: Any, prefix: str = "number") -> str:
        if isinstance(x, Var):
            return names(x)
        scope[f"{prefix}_{len(scope)}"] = x
        return list(scope)[-1]

    lines = [f"def program({', '.join(map(names, jaxpr.takes))}):"]
    for e in jaxpr.equations:
        does = word(functools.partial(e.primitive.compute, **e.params), e.primitive.name)
        call = f"{does}({', '.join(word(x) for x in e.takes)})"
        lines.append(f"    [{', '.join(map(names, e.gives))}] = {call}")
    lines.append(f"    return [{', '.join(map(word, jaxpr.returns))}]")
    return "\n".join(lines), scope


@functools.cache
def compiled(jaxpr: Jaxpr) -> Callable[..., list]:
    """A program as a function of Python."""
    code, scope = written(jaxpr)
    exec(code, scope)
    return scope["program"]


def several(outs: Any) -> list[Value]:
    """The results of a function, which returns one value or a tuple."""
    return list(outs) if isinstance(outs, tuple) else [outs]


def as_returned(outs: list[Value]) -> Any:
    """One value, or a tuple."""
    return outs[0] if len(outs) == 1 else tuple(outs)


def make_jaxpr(function: Callable) -> Callable[..., Jaxpr]:
    """The program of a function, for arguments of given shapes."""
    return lambda *args: stage(lambda *xs: several(function(*xs)), [shape_of(x) for x in args])


jit_p = Primitive("jit", lambda *args, name, jaxpr: compiled(jaxpr)(*args))
shape_rules[jit_p] = lambda *shapes, name, jaxpr: [
    x.shape if isinstance(x, Var) else np.shape(x) for x in jaxpr.returns
]


def jit(function: Callable) -> Callable:
    """Runs the function once for each combination of shapes, and its program from then on."""
    programs: dict[tuple[Shape, ...], Jaxpr] = {}

    def call(*args):
        key = tuple(map(shape_of, args))
        if key not in programs:
            programs[key] = make_jaxpr(function)(*args)
        return as_returned(jit_p.bind(*args, name=function.__name__, jaxpr=programs[key]))

    return call


# Step 3.  A JVP trace gives every value a tangent: how fast it changes, if the arguments change at
# given speeds.  None is the tangent of what does not change.


def total(x: Value | None, y: Value | None) -> Value | None:
    """The sum of two tangents."""
    return x if y is None else y if x is None else add_any(x, y)


def of_linear(primitive: Primitive) -> Callable:
    """The rule of an operation that is linear: do it to the tangents as well."""
    return lambda xs, ts, **params: ([primitive(*xs, **params)], [primitive(*ts, **params)])


def of_unary(primitive: Primitive, derivative: Callable) -> Callable:
    """The rule of a function of one number, with its derivative at x, where its value is y."""

    def rule(xs, ts):
        y = primitive(*xs)
        return [y], [mul(ts[0], derivative(*xs, y))]

    return rule


def _jvp_add(xs, ts):
    out = add(*xs)
    return [out], [total(*(t if t is None else broadcast(t, shape_of(out)) for t in ts))]


def _jvp_sub(xs, ts):
    out = sub(*xs)
    x, y = (t if t is None else broadcast(t, shape_of(out)) for t in ts)
    return [out], [total(x, None if y is None else neg(y))]


def _jvp_mul(xs, ts):
    (x, y), (x_dot, y_dot) = xs, ts
    out = mul(x, y)
    left = None if x_dot is None else mul(x_dot, y)
    right = None if y_dot is None else mul(x, y_dot)
    return [out], [total(left, right)]


def _jvp_div(xs, ts):
    (x, y), (x_dot, y_dot) = xs, ts
    out = div(x, y)
    left = None if x_dot is None else div(x_dot, y)
    right = None if y_dot is None else mul(neg(y_dot), div(out, y))
    return [out], [total(left, right)]


jvp_rules: dict[Primitive, Callable] = {
    **{p: of_linear(p) for p in (neg, reduce_sum, broadcast_in_dim)},
    sin: of_unary(sin, lambda x, y: cos(x)),
    cos: of_unary(cos, lambda x, y: neg(sin(x))),
    exp: of_unary(exp, lambda x, y: y),
    log: of_unary(log, lambda x, y: div(1.0, x)),
    tanh: of_unary(tanh, lambda x, y: mul(add(y, 1.0), sub(1.0, y))),
    add: _jvp_add,
    sub: _jvp_sub,
    mul: _jvp_mul,
    div: _jvp_div,
    add_any: lambda xs, ts: ([add_any(*xs)], [total(*ts)]),
}


class JVPTrace(Trace):
    """Does each operation, and its derivative, in the parent."""

    def parts(self, x: Value) -> tuple[Value, Value | None]:
        """A value and its tangent."""
        return x.known if self.owns(x) else (x, None)

    def join(self, x: Value, tangent: Value | None) -> Value:
        """A value with its tangent."""
        return x if tangent is None else Tracer(self, shape_of(x), (x, tangent))

    def process(self, primitive, args, params):
        xs, ts = zip(*map(self.parts, args), strict=True)
        with running(self.parent):
            if not any(t is not None for t in ts):
                return primitive.bind(*xs, **params)
            outs, tangents = jvp_rules[primitive](xs, ts, **params)
        return list(map(self.join, outs, tangents))


def jvp_several(function: Callable[..., list], xs: Sequence, ts: Sequence) -> tuple[list, list]:
    """The results of a function that returns a list, and their tangents, None for zero."""
    trace = JVPTrace(current)
    args = list(map(trace.join, xs, ts))
    with running(trace):
        pairs = [trace.parts(x) for x in function(*args)]
    return [x for x, _ in pairs], [t for _, t in pairs]


def jvp(function: Callable, xs: Sequence[Value], ts: Sequence[Value]) -> tuple[Any, Any]:
    """The value of a function, and how fast it changes if its arguments change at speeds `ts`."""
    outs, tangents = jvp_several(lambda *args: several(function(*args)), xs, ts)
    pairs = zip(outs, tangents, strict=True)
    tangents = [broadcast(0.0, shape_of(x)) if t is None else t for x, t in pairs]
    return as_returned(outs), as_returned(tangents)


def _jvp_jit(xs, ts, *, name, jaxpr):
    moving = [t is not None for t in ts]
    tangents_out: list[bool] = []

    def both(*args):
        values, given = args[: len(moving)], iter(args[len(moving) :])
        tangents = [next(given) if moves else None for moves in moving]
        outs, out_ts = jvp_several(functools.partial(evaluate, jaxpr), values, tangents)
        tangents_out[:] = [t is not None for t in out_ts]
        return outs + [t for t in out_ts if t is not None]

    args = [*xs, *(t for t in ts if t is not None)]
    results = jit_p.bind(*args, name=name, jaxpr=stage(both, list(map(shape_of, args))))
    rest = iter(results[len(tangents_out) :])
    return results[: len(tangents_out)], [next(rest) if t else None for t in tangents_out]


jvp_rules[jit_p] = _jvp_jit


# Step 4.  The gradient.  Run a JVP trace inside a trace that knows all values and no tangent:
# what depends on values alone is done at once, and what remains is a program of tangents.  It is
# linear, and a linear program can be run backwards: each equation turns the cotangent of what it
# gives into cotangents of what it takes.


class PartialTrace(StagingTrace):
    """Hands what is known to the parent, and writes down the rest."""

    def process(self, primitive, args, params):
        if not any(map(self.owns, args)):
            with running(self.parent):
                return primitive.bind(*args, **params)
        if primitive is jit_p and not all(map(self.owns, args)):
            return self.divide(args, **params)
        return super().process(primitive, args, params)

    def divide(self, args: Sequence[Value], *, name: str, jaxpr: Jaxpr) -> list[Value]:
        """Cuts the program of a jit in two: the first half is run, the second is written down."""
        first = StagingTrace()
        second = PartialTrace(first)
        inside = [(second if self.owns(x) else first).new(shape_of(x)) for x in args]
        outside = dict(zip(inside, args, strict=True))
        with running(second):
            outs = evaluate(jaxpr, *inside)
        # What the second half needs of the first: its arguments, and what it computes.
        needed = [x for e in second.equations for x in e.takes if isinstance(x, Tracer)]
        needed = list(dict.fromkeys(needed))
        computed = [x for x in needed if x not in outside]
        known = [x for x in outs if not second.owns(x)]
        half = Jaxpr(
            [x.known for x in inside if first.owns(x)],
            first.equations,
            [first.atom(x) for x in known + computed],
        )
        with running(self.parent):
            values = jit_p.bind(
                *(outside[x] for x in inside if first.owns(x)), name=name, jaxpr=half
            )
        outside.update(zip(computed, values[len(known) :], strict=True))

        takes = needed + [x for x in inside if second.owns(x)]
        half = Jaxpr(
            [x.known for x in takes],
            [
                e.replace(lambda x: x.known if isinstance(x, Tracer) else x)
                for e in second.equations
            ],
            [x.known for x in outs if second.owns(x)],
        )
        tangents = super().process(
            jit_p, [outside[x] for x in takes], {"name": name, "jaxpr": half}
        )
        early, late = iter(values), iter(tangents)
        return [next(late if second.owns(x) else early) for x in outs]


def fitted(ct: Value, shape: Shape) -> Value:
    """The cotangent of a scalar that was stretched: the sum of all its uses."""
    return ct if shape_of(ct) == shape else sum(ct)


def is_linear(x: Any) -> bool:
    """Whether what an equation takes is a variable of the linear program."""
    return isinstance(x, Var)


def _transpose_add(cts, x, y):
    return [fitted(cts[0], a.shape) if is_linear(a) else None for a in (x, y)]


def _transpose_mul(cts, x, y):
    if is_linear(x):
        return [fitted(mul(cts[0], y), x.shape), None]
    return [None, fitted(mul(x, cts[0]), y.shape)]


def _transpose_sum(cts, x, *, axes):
    return [broadcast(cts[0], x.shape, tuple(n for n in range(len(x.shape)) if n not in axes))]


def _transpose_broadcast(cts, x, *, shape, broadcast_dimensions):
    summed = tuple(n for n in range(len(shape)) if n not in broadcast_dimensions)
    return [reduce_sum(cts[0], axes=summed)]


def _transpose_jit(cts, *takes, name, jaxpr):
    linear = [is_linear(x) for x in takes]
    values = [x for x in takes if not is_linear(x)]

    def backwards(*args):
        known, given = iter(args[: len(values)]), iter(args[len(values) :])
        scope = {v: next(known) for v, x in zip(jaxpr.takes, linear, strict=True) if not x}
        out_cts = [None if ct is None else next(given) for ct in cts]
        found = backward_pass(jaxpr, out_cts, scope)
        present[:] = [x and ct is not None for x, ct in zip(linear, found, strict=True)]
        return [ct for ct, there in zip(found, present, strict=True) if there]

    present: list[bool] = []
    args = [*values, *(ct for ct in cts if ct is not None)]
    results = iter(jit_p.bind(*args, name=name, jaxpr=stage(backwards, list(map(shape_of, args)))))
    return [next(results) if there else None for there in present]


transpose_rules: dict[Primitive, Callable] = {
    neg: lambda cts, x: [neg(cts[0])],
    add_any: _transpose_add,
    mul: _transpose_mul,
    div: lambda cts, x, y: [fitted(div(cts[0], y), x.shape), None],
    reduce_sum: _transpose_sum,
    broadcast_in_dim: _transpose_broadcast,
    jit_p: _transpose_jit,
}


def backward_pass(jaxpr: Jaxpr, cts: Sequence, scope: dict[Var, Value] | None = None) -> list:
    """The cotangents of what a linear program takes; `scope` has the variables that are known."""
    scope, found = scope or {}, {}

    def accumulate(var: Any, ct: Value | None) -> None:
        if isinstance(var, Var) and ct is not None:
            found[var] = add_any(found[var], ct) if var in found else ct

    for var, ct in zip(jaxpr.returns, cts, strict=True):
        accumulate(var, ct)
    # A cotangent is complete once all uses were visited: go backwards.
    for e in reversed(jaxpr.equations):
        out_cts = [found.pop(var, None) for var in e.gives]
        if any(ct is not None for ct in out_cts):
            takes = [scope.get(x, x) if isinstance(x, Var) else x for x in e.takes]
            rule = transpose_rules[e.primitive]
            for var, ct in zip(takes, rule(out_cts, *takes, **e.params), strict=True):
                accumulate(var, ct)
    return [found.get(var) for var in jaxpr.takes]


def value_and_grad(function: Callable) -> Callable[..., tuple[Value, Value]]:
    """The value of a function, and its derivative by the first argument."""

    def call(x, *rest):
        trace = PartialTrace(current)
        tangent = trace.new(shape_of(x))
        with running(trace):
            [out], [out_t] = jvp_several(lambda x: several(function(x, *rest)), [x], [tangent])
        linear = Jaxpr([tangent.known], trace.equations, [None if out_t is None else out_t.known])
        [ct] = backward_pass(linear, [1.0])
        return out, broadcast(0.0, shape_of(x)) if ct is None else ct

    return call


def grad(function: Callable) -> Callable[..., Value]:
    """The derivative of a function by its first argument."""
    return lambda *args: value_and_grad(function)(*args)[1]


# Step 5.  A batch trace gives every value an example axis, in front.  An operation on examples
# becomes one on whole batches.  A name for that axis lets examples speak to each other.


class BatchTrace(Trace):
    """Does each operation for all examples at once, in the parent."""

    def __init__(self, parent: Trace, size: int, name: str | None) -> None:
        super().__init__(parent)
        self.size, self.name = size, name

    def batch(self, x: Value) -> Tracer:
        """A tracer of one example, for an array of all."""
        return Tracer(self, shape_of(x)[1:], x)

    def process(self, primitive, args, params):
        batched = list(map(self.owns, args))
        values = [x.known if b else x for x, b in zip(args, batched, strict=True)]
        with running(self.parent):
            named = primitive is psum_p and self.name in params["axes"]
            if not any(batched) and not named:
                return primitive.bind(*values, **params)
            outs, out_batched = batch_rules[primitive](self, values, batched, **params)
        return [self.batch(x) if b else x for x, b in zip(outs, out_batched, strict=True)]

    def run(self, function: Callable[..., list], args: Sequence, batched: Sequence[bool]) -> tuple:
        """The results of a function on batches, and which of them are batches."""
        inside = [self.batch(x) if b else x for x, b in zip(args, batched, strict=True)]
        with running(self):
            outs = function(*inside)
        return [x.known if self.owns(x) else x for x in outs], list(map(self.owns, outs))


def _batch_elementwise(primitive: Primitive) -> Callable:
    def rule(trace, args, batched):
        ranks = [len(shape_of(x)) - b for x, b in zip(args, batched, strict=True)]
        rank = max(ranks)

        def lifted(x, rank_of_x, is_batch):
            """An operand whose axes meet those of the others."""
            if is_batch and rank_of_x < rank:
                return broadcast(x, (trace.size, *(1,) * rank), (0,))
            if rank_of_x and not is_batch:
                return broadcast(x, (1, *shape_of(x)), tuple(range(1, rank + 1)))
            return x

        return [primitive(*map(lifted, args, ranks, batched))], [True]

    return rule


def for_all(trace: BatchTrace, x: Value, is_batch: bool) -> Value:
    """A batch; what is the same for all examples is repeated."""
    if is_batch:
        return x
    return broadcast(x, (trace.size, *shape_of(x)), tuple(range(1, 1 + len(shape_of(x)))))


def _batch_add_any(trace, args, batched):
    return [add_any(*(for_all(trace, x, b) for x, b in zip(args, batched, strict=True)))], [True]


def _batch_sum(trace, args, batched, *, axes):
    return [reduce_sum(*args, axes=tuple(n + 1 for n in axes))], [True]


def _batch_broadcast(trace, args, batched, *, shape, broadcast_dimensions):
    dims = (0, *(n + 1 for n in broadcast_dimensions))
    return [broadcast(*args, (trace.size, *shape), dims)], [True]


def _batch_jit(trace, args, batched, *, name, jaxpr):
    out_batched: list[bool] = []

    def whole(*xs):
        inner = BatchTrace(current, trace.size, trace.name)
        outs, out_batched[:] = inner.run(functools.partial(evaluate, jaxpr), xs, batched)
        return outs

    program = stage(whole, list(map(shape_of, args)))
    return jit_p.bind(*args, name=name, jaxpr=program), out_batched


def _batch_psum(trace, args, batched, *, axes):
    [x], [is_batch] = args, batched
    if trace.name not in axes:
        return psum_p.bind(x, axes=axes), [True]
    return [reduce_sum(x, axes=(0,)) if is_batch else mul(x, float(trace.size))], [False]


def _unbound(x, *, axes):
    raise NameError(f"psum: no vmap around it names an axis {axes[0]!r}")


psum_p = Primitive("psum", _unbound)
shape_rules[psum_p] = lambda x, *, axes: [x]
jvp_rules[psum_p] = of_linear(psum_p)
# Each example gave to the sums of all, so it gets back the cotangents of all.
transpose_rules[psum_p] = lambda cts, x, *, axes: psum_p.bind(cts[0], axes=axes)

batch_rules: dict[Primitive, Callable] = {
    **{p: _batch_elementwise(p) for p in ELEMENTWISE},
    add_any: _batch_add_any,
    reduce_sum: _batch_sum,
    broadcast_in_dim: _batch_broadcast,
    jit_p: _batch_jit,
    psum_p: _batch_psum,
}


def psum(x: Value, axis_name: str) -> Value:
    """The sum over all examples of the vmap that names the axis."""
    return psum_p(x, axes=(axis_name,))


def vmap(function: Callable, in_axes: Any = 0, axis_name: str | None = None) -> Callable:
    """The function for a batch; `in_axes` is None for an argument that all examples share."""

    def call(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        batched = [axis is not None for axis in axes]
        size = next(shape_of(x)[0] for x, b in zip(args, batched, strict=True) if b)
        trace = BatchTrace(current, size, axis_name)
        outs, out_batched = trace.run(lambda *xs: several(function(*xs)), args, batched)
        pairs = zip(outs, out_batched, strict=True)
        return as_returned([for_all(trace, x, b) for x, b in pairs])

    return call
