"""Records of functions that rearrange, join, split and pad arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numpy.records import ANY, FULL, RANKED, Record, written

DEEP = ((2, 1, 3), (2, 3, 2))
MATRIX = ((2, 3), (3, 3), (0, 3))


def one(name: str, shapes: Any, options: Callable[..., Any] | None = None, **more: Any) -> Record:
    """A record of a function of one array of any dtype; `options` takes the draw and the array."""

    def draw(d: Any) -> Any:
        x = d.array(shape=shapes)
        return d.call(x, **(options(d, x) if options else {}))

    return Record(f"numpy.{name}", draw, **more)


def several(name: str, lists: Any, axes: Any = (), **more: Any) -> Record:
    """A record of a function of a list of arrays, whose dtypes may differ."""
    draw = lambda d: d.call(
        [d.array(shape=[shape]) for shape in d.of(*lists)],
        **({"axis": d.of(*axes)} if axes else {}),
    )
    return Record(f"numpy.{name}", draw, **more)


def positional(f: Any, x: Any, **options: Any) -> Any:
    """Calls a function whose parameters have other names here than in NumPy."""
    return f(x, *options.values())


PERMUTED = [
    one("transpose", RANKED),
    one("transpose", DEEP, lambda d, x: {"axes": d.of((1, -1, 0), (2, 0, 1))}, case="axes"),
    one("permute_dims", DEEP, lambda d, x: {"axes": d.of((1, 2, 0), (0, -1, 1))}),
    one("matrix_transpose", [(2, 3), *DEEP]),
    one("swapaxes", DEEP, lambda d, x: {"axis1": d.axis(x), "axis2": d.axis(x)}),
    one(
        "moveaxis",
        DEEP,
        lambda d, x: dict(
            zip(
                ("source", "destination"),
                d.of(((0, 1), (-1, 0)), (0, 2), ((), ()), ((2, 0, 1), (0, 1, 2))),
                strict=True,
            )
        ),
    ),
    one("rollaxis", DEEP, lambda d, x: {"axis": d.of(2, 0, -2), "start": d.of(1, 0, 3, -1)}),
    one("flip", RANKED, lambda d, x: {"axis": d.of(0, None, -1, (0, -1)[: x.ndim])}),
    one("fliplr", MATRIX),
    one("flipud", RANKED),
    one("rot90", MATRIX, lambda d, x: {"k": d.of(1, -1, 2, 4), "axes": d.of((0, 1), (1, 0))}),
    one("roll", RANKED, lambda d, x: {"shift": d.of(1, -5), "axis": d.axis(x, none=True)}),
    one("roll", DEEP, lambda d, x: {"shift": (1, 2), "axis": d.of((0, 2), 1, (1, 1))}, case="axes"),
]

RESHAPED = [
    one(
        "reshape",
        [(2, 3), (6,), (1, 2, 3)],
        lambda d, x: {"shape": d.of((3, 2), (-1,), (6, -1, 1)), "order": d.of("C", "F")},
    ),
    one("ravel", ANY, lambda d, x: {"order": d.of("C", "F")}),
    one("expand_dims", ANY, lambda d, x: {"axis": d.of(0, -1, (0, -1))}),
    one("squeeze", [(2, 1, 3), (1, 1, 0)], lambda d, x: {"axis": d.of(1, (-2,), ())}),
    one("squeeze", [(2, 1, 3), (1, 1), ()], case="all"),
    one("broadcast_to", [(2, 1), (3,), ()], lambda d, x: {"shape": d.of((2, 3), (4, 2, 3))}),
    Record("numpy.broadcast_arrays", lambda d: d.call(*d.pair()), call=lambda f, *x: list(f(*x))),
    *(one(f"atleast_{n}d", ANY) for n in (1, 2, 3)),
    one("tile", ANY, lambda d, x: {"reps": d.of((2, 1), 2, (2, 1, 1, 3), 0)}, call=positional),
    one("repeat", ANY, lambda d, x: {"repeats": d.of(2, 0), "axis": d.axis(x, none=True)}),
    one(
        "repeat",
        [(2, 3)],
        lambda d, x: {"repeats": np.array(d.of([2, 0, 1], [1, 1, 3])), "axis": d.of(1, -1)},
        case="unequally",
    ),
    one("resize", FULL, lambda d, x: {"new_shape": d.of((7, 2), 3, (0, 2))}),
]

DIAGONALS = [
    one("diag", [(2, 3), (4,), (3, 3)], lambda d, x: {"k": d.of(0, 1, -2)}),
    one("diagflat", [(2, 2), (3,)], lambda d, x: {"k": d.of(0, 1, -2)}),
    *(
        one(
            name,
            [(2, 3), (3, 2, 4)],
            lambda d, x: {"offset": d.of(0, 1, -1), "axis1": d.of(0, -2), "axis2": d.of(-1)},
        )
        for name in ("diagonal",)
    ),
    one("trace", [(2, 3), (2, 2, 4)], lambda d, x: {"offset": d.of(0, 1, -1)}),
    *(
        one(name, [(2, 3), (2, 3, 3)], lambda d, x: {"k": d.of(0, 1, -1)})
        for name in ("tril", "triu")
    ),
    one(
        "vander",
        [(3,), (0,)],
        lambda d, x: {"N": d.of(4, None, 2), "increasing": d.of(False, True)},
        kinds="integers keep their dtype",
    ),
    Record(
        "numpy.fill_diagonal",
        lambda d: d.call(
            x := d.array("f", [(3, 3), (2, 4), (4, 2), (2, 2, 2)]),
            d.array(x.dtype.name, [(2,), ()]),
        ),
        written(np.fill_diagonal),
        call=lambda f, x, values: f(x, values, inplace=False),
        grad=(0, 1),
    ),
]

JOINED = [
    several("concatenate", [[(2, 3), (1, 3), (2, 3)], [(0, 3), (2, 3)]], (0, -2)),
    several("concatenate", [[(2, 3), (4,)], [(), (2, 1)][1:]], (None,), case="flat"),
    several("concat", [[(2, 3), (2, 1)], [(2, 0), (2, 3)]], (1, -1)),
    several("stack", [[(2, 3)] * 2, [(0, 3)] * 3], (1, 0, -1, -3)),
    several("stack", [[()] * 3], (0,), case="scalars"),
    several("vstack", [[(2, 3), (3,)], [(3,), (3,)], [(), ()]]),
    several("hstack", [[(2, 3), (2, 1)], [(3,), (2,)], [(), ()]]),
    several("dstack", [[(2, 3), (2, 3)], [(3,), (3,)], [(), ()]]),
    several("column_stack", [[(2, 3), (2,)], [(3,), (3,)]]),
    Record(
        "numpy.block",
        lambda d: d.call(
            [[d.array(shape=[(2, 3)]), d.array(shape=[(2, 1)])], [d.array(shape=[(4,)]), 7][:1]]
        ),
    ),
    Record(
        "numpy.append",
        lambda d: d.call(
            d.array(shape=[(2, 3)]), d.array(shape=[(2, 3), (2, 1)]), axis=d.of(-1, None, 1)
        ),
        grad=(0, 1),
    ),
]

SPLIT = [
    one(
        "split", [(4, 2), (6, 0)], lambda d, x: {"indices_or_sections": d.of(2, (1, 3), (0, 1, 1))}
    ),
    one("array_split", [(5, 2), (3,)], lambda d, x: {"indices_or_sections": d.of(2, 3, (1, 3))}),
    one(
        "hsplit",
        [(2, 4), (4,)],
        lambda d, x: {"indices_or_sections": d.of(2, (1, 3))},
        call=positional,
    ),
    one("vsplit", [(4, 2)], lambda d, x: {"indices_or_sections": d.of(2, (1,))}, call=positional),
    one(
        "dsplit", [(1, 2, 4)], lambda d, x: {"indices_or_sections": d.of(2, (3,))}, call=positional
    ),
    one("unstack", FULL, lambda d, x: {"axis": d.axis(x)}),
]

EDITED = [
    one(
        "delete",
        [(3, 4), (5, 2)],
        lambda d, x: {"obj": d.of(1, -1, slice(0, 3, 2)), "axis": d.of(0, None)},
    ),
    Record(
        "numpy.delete",
        lambda d: d.call(d.array(shape=[(5,)]), d.of(np.array([0, -1]), np.array([1, 1, 3]))),
        case="positions",
        jit="which positions are equal decides the shape",
        vmap="which positions are equal decides the shape",
    ),
    Record(
        "numpy.insert",
        lambda d: d.call(
            x := d.array("fi", [(3, 4)]),
            d.array(x.dtype.name, [(4,), ()]),
            obj=d.of(1, -1, 3),
            axis=0,
        ),
        call=lambda f, x, values, obj, axis: f(x, obj, values, axis),
        grad=(0, 1),
    ),
    Record(
        "numpy.insert",
        lambda d: d.call(
            x := d.array("fi", [(5,)]), d.array(x.dtype.name, [(2,), ()]), obj=d.of((3, 1), (0, 0))
        ),
        call=lambda f, x, values, obj: f(x, np.array(obj), values),
        grad=(0, 1),
        case="positions",
    ),
    Record(
        "numpy.insert",
        lambda d: d.call(
            x := d.array("fi", [(3, 4)]),
            d.array(x.dtype.name, [(3, 4), (4,)]),
            obj=d.of((2, 0, 2), (-1, 3, 1)),
        ),
        call=lambda f, x, values, obj: f(x, np.array(obj), values, 0),
        grad=(0, 1),
        case="rows",
    ),
    one(
        "insert",
        [(4, 3)],
        lambda d, x: {
            "obj": d.of(slice(1, 3), slice(None, None, 2)),
            "values": 2,
            "axis": d.of(0, 1),
        },
        case="slice",
    ),
    *(
        one(
            "pad",
            [(2, 3), (3, 2)],
            lambda d, x, mode=mode: {"pad_width": d.of(1, (2, 0), ((1, 2), (0, 3))), "mode": mode},
            case=mode,
        )
        for mode in ("constant", "edge", "wrap", "reflect", "symmetric")
    ),
    *(
        Record(
            "numpy.pad",
            lambda d, mode=mode: d.call(
                d.array("fi", [(2, 3), (4,)]), pad_width=d.of((1, 2), 3), mode=mode
            ),
            case=mode,
        )
        for mode in ("linear_ramp", "maximum", "minimum", "mean", "median")
    ),
    *(
        Record(
            "numpy.pad",
            lambda d, mode=mode, options=options: d.call(
                d.array("fi", [(2, 3), (3, 3)]), pad_width=d.of(5, (2, 3)), mode=mode, **options
            ),
            case=f"{mode} {next(iter(options))}",
        )
        for mode, options in (
            ("constant", {"constant_values": ((1, 2), (3, 4))}),
            ("reflect", {"reflect_type": "odd"}),
            ("symmetric", {"reflect_type": "odd"}),
            ("linear_ramp", {"end_values": (4, 8)}),
            ("minimum", {"stat_length": 2}),
            ("mean", {"stat_length": ((1, 2), (2, 1))}),
        )
    ),
    Record(
        "numpy.trim_zeros",
        lambda d: d.call(d.of(np.float32([0, 1, 0, 2, 0, 0]), np.int32([0, 0]), np.float32([3]))),
        jit="the values decide the shape",
        vmap="the values decide the shape",
        grad="the values decide the shape",
    ),
]

RECORDS = [*PERMUTED, *RESHAPED, *DIAGONALS, *JOINED, *SPLIT, *EDITED]
