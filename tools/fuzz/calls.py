"""Calls of public functions, drawn after the templates of `calls.txt`.

A line of the file is an expression with holes, `->`, the kind of its result, and its shape.
A hole `<x:KINDS RANK>` is an operand of one of the kinds, letters of `draw.DTYPES`; RANK is a
number of dimensions, or the least with a plus.  `{a b c}` is one of several words.  The kind is a
letter, or `x` for that of the operand, `F` for that of floating-point results of it, `R` for its
real part's, `p` and `P` for the promoted kinds of both operands, `d` for that of the dtype that is
named, and `?`.  The shape is `=` for the operand's, `&` for that of both, `()`, `?`, that of a
reduction, or where it is absent NumPy's for the same call.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.fuzz import draw
from tools.fuzz.draw import ALL, DTYPES, Draw, Shape, Value

_HOLE = re.compile(r"<([a-z]\w*)(?::([^<>]*))?>")
_WORDS = re.compile(r"\{([^{}]*)\}")
_NAMED_HOLES = ("<name", "<like", "<same")


class Template(NamedTuple):
    """One line of the file."""

    text: str
    kind: str
    shape: str


@functools.cache
def templates() -> tuple[tuple[Template, ...], ...]:
    """The templates, by the sections of the file."""
    text = Path(__file__).with_name("calls.txt").read_text(encoding="utf-8")
    return tuple(
        tuple(_parsed(line) for line in section.strip().split("\n")[1:])
        for section in text.split("# ")[1:]
    )


def _parsed(line: str) -> Template:
    text, _, result = line.rpartition(" -> ")
    kind, _, shape = result.partition(" ")
    return Template(text, kind, shape)


def call(draw: Draw) -> Value:
    """A call of a public function."""
    return Call(draw, draw.one(draw.one(templates()))).value()


class Call:
    """A template while it is filled.

    Attributes:
        draw: the program.
        x: the operand that other holes depend on.
        y: the operand that broadcasts with it.
        kind_of_dtype: the kind of the dtype that is named.
    """

    def __init__(self, draw: Draw, template: Template) -> None:
        self.draw = draw
        self.template = template
        self.x = Value("", None, "?")
        self.y = Value("", (), "b")
        self.kind_of_dtype = "f"
        self._needs_name = any(hole in template.text for hole in _NAMED_HOLES)

    def value(self) -> Value:
        """The expression."""
        words = _WORDS.sub(lambda found: self.draw.one(found[1].split()), self.template.text)
        pieces = _HOLE.split(words)
        real, shapes = [pieces[0]], [pieces[0]]
        for hole, spec, rest in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            kinds, ranks = _specification(spec or "")
            filled = _HOLES[hole](self, kinds, ranks)
            real += [filled.text, rest]
            # In place of an operand, NumPy is given zeros of its shape.
            is_array = hole in _ARRAYS and filled.shape is not None
            shapes += [f"np.zeros({filled.shape})" if is_array else filled.text, rest]
        kind = self._kind()
        shape = self._shape("".join(shapes)) if kind != "?" else None
        text = "".join(real)
        is_operator = "jnp" not in self.template.text and self.template.text[0] in "<-~"
        return Value(f"({text})" if is_operator else text, shape, kind)

    def _kind(self) -> str:
        rule, x = self.template.kind, self.x.kind
        if rule in ("p", "P"):
            found = draw.promoted(x, self.y.kind)
            return "f" if rule == "P" and found in "bui" else found
        if rule == "x":
            return "i" if x == "b" and self.template.shape == "reduce" else x
        if rule == "F":
            return "f" if x in "bui" else x
        if rule == "R":
            return "f" if x == "c" else x
        return self.kind_of_dtype if rule == "d" else rule

    def _shape(self, text: str) -> Shape | None:
        match self.template.shape:
            case "=":
                return self.x.shape
            case "&" | "&3":
                return draw.broadcast(self.x.shape, self.y.shape)
            case "()":
                return ()
            case "?" | "tuple":
                return None
            case "reduce":
                axes = re.search(r"axis=(None|-?\d+|\([^()]*\))", text)
                text = f"np.sum(np.zeros({self.x.shape}), axis={axes[1] if axes else None})"
        return _numpy_shape(text)

    def operand(self, kinds: str, ranks: range) -> Value:
        """The operand that others depend on."""
        ask = self.draw.value if self._needs_name else self.draw.operand
        self.x = ask(kinds, ranks)
        return self.x

    def name(self, kinds: str, ranks: range) -> Value:
        """The operand, by its name."""
        return self.operand(kinds, ranks) if self.x.shape is None else self.x

    def partner(self, kinds: str, ranks: range) -> Value:
        """An operand that broadcasts with the first, or a Python number."""
        shape = self.x.shape or ()
        if self.draw.chance(0.25) and ranks != range(1):
            kind = "f" if "f" in kinds else "i"
            self.y = Value(self.draw.number(kind), (), kind if kind in kinds else "i")
            return self.y
        options = [shape, (), shape[1:], tuple(1 if i else n for i, n in enumerate(shape))]
        if self.draw.chance(0.02):
            options = [(5,), (2, 2)]
        self.y = self.draw.operand(kinds, draw.ANY_RANK, self.draw.one(options[: ranks.stop]))
        return self.y

    def same(self, kinds: str, ranks: range) -> Value:
        """An operand of the same shape."""
        self.y = self.draw.value(kinds, draw.ANY_RANK, self.x.shape)
        return self.y

    def like(self, kinds: str, ranks: range) -> Value:
        """An operand of the same shape and dtype."""
        other = self.draw.value(self.x.kind if self.draw.chance(0.9) else ALL, shape=self.x.shape)
        return Value(f"{other.text}.astype({self.x.text}.dtype)", self.x.shape, self.x.kind)

    def axis(self, kinds: str, ranks: range) -> Value:
        """An axis, in range but for a few."""
        ndim = max(self.x.ndim, 0) + self.draw.chance(0.02)
        return Value(str(self.draw.random.randint(-ndim, ndim - 1) if ndim else 0))

    def nonnegative_axis(self, kinds: str, ranks: range) -> Value:
        """An axis as `lax` counts them."""
        return Value(str(self.draw.random.randint(0, max(self.x.ndim - 1, 0))))

    def axes(self, kinds: str, ranks: range) -> Value:
        """None, an axis, or several."""
        ndim = max(self.x.ndim, 0)
        if ndim == 0 or self.draw.chance(0.4):
            return Value("None")
        if self.draw.chance(0.6):
            return self.axis(kinds, ranks)
        chosen = self.draw.random.sample(range(ndim), self.draw.random.randint(0, ndim))
        return Value(str(tuple(chosen)))

    def dims(self, kinds: str, ranks: range) -> Value:
        """Several axes as `lax` counts them."""
        ndim = max(self.x.ndim, 0)
        return Value(str(tuple(i for i in range(ndim) if self.draw.chance(0.6))))

    def permutation(self, kinds: str, ranks: range) -> Value:
        """All axes in some order."""
        order = list(range(max(self.x.ndim, 0)))
        self.draw.random.shuffle(order)
        return Value(str(tuple(order)))

    def reshaped(self, kinds: str, ranks: range) -> Value:
        """A shape with as many elements."""
        size = int(np.prod(self.x.shape or ()))
        options: list[object] = [(-1,), (size, 1), (1, -1), size]
        options += [(n, size // n) for n in (2, 3) if size % n == 0]
        return Value(str(self.draw.one(options)))

    def widened(self, kinds: str, ranks: range) -> Value:
        """A shape to which the operand broadcasts."""
        shape = tuple(3 if n == 1 else n for n in self.x.shape or ())
        return Value(str((2, *shape) if self.draw.chance(0.5) else shape))

    def right(self, kinds: str, ranks: range) -> Value:
        """A right operand of a product of matrices."""
        last = (self.x.shape or (1,))[-1]
        shape = (last,) if ranks.start == 0 and self.draw.chance(0.4) else (last, 2)
        self.y = self.draw.value(kinds, draw.ANY_RANK, shape)
        return self.y

    def slice(self, kinds: str, ranks: range) -> Value:
        """An index that is a slice."""
        options = (":", "1:", ":-1", "::-1", "::2", "-2:", "1:1", "2:0:-1", "5:", "-9:9")
        return Value(self.draw.one(options))

    def dtype(self, kinds: str, ranks: range) -> Value:
        """The name of a dtype."""
        self.kind_of_dtype = self.draw.one(kinds)
        return Value(repr(self.draw.one(DTYPES[self.kind_of_dtype])))

    def fresh(self, shape: Shape, kinds: str) -> Value:
        """A value of a fixed shape, which is the operand if there is none."""
        found = self.draw.value(kinds, draw.ANY_RANK, shape)
        if self.x.shape is None:
            self.x = found
        return found


def _specification(spec: str) -> tuple[str, range]:
    """The kinds and the ranks that a hole allows."""
    kinds, ranks = ALL, draw.ANY_RANK
    for word in spec.split():
        if word[0].isdigit():
            least = int(word.rstrip("+"))
            ranks = range(least, 9 if word.endswith("+") else least + 1)
        else:
            kinds = word
    return kinds, ranks


def _numpy_shape(text: str) -> Shape | None:
    """The shape that NumPy's function of the same name gives; None if it refuses the call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tuple(np.shape(eval(text, {"jnp": np, "np": np})))
        except Exception:
            return None


def _text(options: tuple[object, ...]) -> Callable[[Call, str, range], Value]:
    return lambda call, kinds, ranks: Value(str(call.draw.one(options)))


_HOLES: dict[str, Callable[[Call, str, range], Value]] = {
    "x": Call.operand,
    "name": Call.name,
    "y": Call.partner,
    "z": Call.partner,
    "same": Call.same,
    "like": Call.like,
    "axis": Call.axis,
    "axis0": Call.nonnegative_axis,
    "axes": Call.axes,
    "dims": Call.dims,
    "perm": Call.permutation,
    "reshape": Call.reshaped,
    "widened": Call.widened,
    "right": Call.right,
    "right2": lambda call, kinds, ranks: call.right(kinds, range(2, 3)),
    "slice": Call.slice,
    "dtype": Call.dtype,
    "fdtype": lambda call, kinds, ranks: call.dtype("f", ranks),
    "idtype": lambda call, kinds, ranks: call.dtype("i", ranks),
    "vector": lambda call, kinds, ranks: call.fresh((call.draw.one((2, 3)),), kinds),
    "vector3": lambda call, kinds, ranks: call.fresh((3,), kinds),
    "square": lambda call, kinds, ranks: call.fresh((2, 2), kinds),
    "images": lambda call, kinds, ranks: call.fresh((1, 2, 4, 3), kinds),
    "kernel": lambda call, kinds, ranks: call.like(kinds, ranks)._replace(
        text=f"jnp.ones((3, 2, 2, 1), {call.x.text}.dtype)"
    ),
    "ndim": lambda call, kinds, ranks: Value(str(max(call.x.ndim, 0))),
    "shape": lambda call, kinds, ranks: Value(str(call.draw.shape(call.draw.one((0, 1, 2))))),
    "number": lambda call, kinds, ranks: Value(call.draw.number()),
    "int": _text((0, 1, -1, 2, -2, 3)),
    "positive": _text((1, 2, 3)),
    "reps": _text((2, (2, 1), (1, 2), (0,), (2, 1, 3))),
    "bool": _text((True, False)),
}
_ARRAYS = ("x", "name", "y", "z", "same", "like", "right", "right2", "vector", "vector3", "square")
