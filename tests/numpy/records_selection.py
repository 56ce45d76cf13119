"""Records of functions that pick, place, search and order elements, or take them as sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import FULL, RANKED, Record, written

NONEMPTY = (*FULL, ())
SHAPE = "the values decide the shape"
INTEGERS = "its values are integers or bools"
UNSIZED = {"jit": SHAPE, "vmap": SHAPE, "grad": SHAPE}
LISTS = ((5,), (1,), (0,))


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"numpy.{name}", draw, oracle, **options)


def taken_or_nan(x: Any, i: Any, axis: int) -> Any:
    """What `take` answers: NaN for indices that are out of bounds."""
    n = x.shape[axis]
    taken = np.moveaxis(np.take(x, np.clip(i, -n, n - 1), axis), axis, -1)
    return np.moveaxis(np.where((i >= -n) & (i < n), taken, np.nan), -1, axis)


PICKED = [
    record(
        "where",
        lambda d: d.call(
            d.array("bi", [(3,), ()]),
            *d.pair(shapes=[((2, 3), (2, 3)), ((3,), (2, 1)), ((), (3,)), ((0, 3), ())]),
        ),
        grad=(1, 2),
    ),
    record("where", lambda d: d.call(d.array("bif", [(2, 3), (4,)])), case="places", **UNSIZED),
    record(
        "select",
        lambda d: d.call(
            [d.array("b", [(2, 3)]) for _ in range(2)],
            [d.array("fi", [(2, 3)]), d.array("fi", [(3,)])],
            default=d.of(0.5, 1),
        ),
        grad=(1,),
        kinds="a weak default gives way",
    ),
    record(
        "choose",
        lambda d: d.call(
            d.array("iu", [(3,), (2, 3)], (-4, 5)),
            [d.array("fi", [(3,)]), d.array("fi", [(1,)])],
            mode=d.of("wrap", "clip"),
        ),
        grad=(1,),
    ),
    record(
        "take",
        lambda d: d.call(
            d.array(shape=[(2, 3), (4,)]),
            d.array("i", [(2, 2), (0,), ()], (-5, 5)),
            mode=d.of("wrap", "clip"),
            axis=d.of(-1, 0, None),
        ),
    ),
    record(
        "take",
        lambda d: d.call(d.array("f", [(2, 3)]), d.array("i", [(4,)], (-4, 4)), axis=d.of(0, 1)),
        taken_or_nan,
        case="out of bounds",
        grad="what is out of bounds is NaN",
    ),
    record(
        "take_along_axis",
        lambda d: d.call(
            d.array(shape=[(2, 3)]),
            d.array("i", [(2, 3), (2, 1)], (-2, 1)),
            axis=d.of(1, -1),
        ),
    ),
    record(
        "compress",
        lambda d: d.call(
            d.array("b", [(3,), (2,)]), d.array(shape=[(3, 3), (3, 4)]), axis=d.of(0, 1, None)
        ),
        **UNSIZED,
    ),
    record(
        "extract", lambda d: d.call(d.array("bi", [(2, 3)]), d.array(shape=[(2, 3)])), **UNSIZED
    ),
    record(
        "piecewise",
        lambda d: d.call(d.array("f", RANKED)),
        call=lambda f, x: f(x, [x < -1, x > 1], [-1.0, lambda y: 2 * y, 7.0]),
    ),
]

PLACED = [
    record(
        "put",
        lambda d: d.call(
            x := d.array("f", [(2, 3)]),
            np.array(d.of([0, -1, 7], [1, -4, -9])),
            d.array(x.dtype.name, [(3,), (1,)]),
            mode=d.of("wrap", "clip"),
        ),
        written(np.put),
        call=lambda f, *args, mode: f(*args, mode=mode, inplace=False),
        grad=(0, 2),
    ),
    record(
        "place",
        lambda d: d.call(
            x := d.array("f", [(2, 3)]),
            d.array("b", [(2, 3)]),
            d.array(x.dtype.name, [(3,), (1,), (7,)]),
        ),
        written(np.place),
        call=lambda f, *args: f(*args, inplace=False),
        grad=(0, 2),
    ),
    record(
        "put_along_axis",
        lambda d: d.call(
            x := d.array("f", [(2, 3)]),
            d.array("i", [(2, 1)], (-2, 1)),
            d.array(x.dtype.name, [(2, 1)]),
        ),
        written(lambda x, i, v: np.put_along_axis(x, i, v, 1)),
        call=lambda f, *args: f(*args, 1, inplace=False),
        grad=(0, 2),
    ),
]

PLACES = [
    record("nonzero", lambda d: d.call(d.array(shape=FULL)), **UNSIZED),
    record("argwhere", lambda d: d.call(d.array(shape=NONEMPTY)), **UNSIZED),
    record("flatnonzero", lambda d: d.call(d.array(shape=NONEMPTY)), **UNSIZED),
    record(
        "flatnonzero",
        lambda d: d.call(d.array("bi", FULL), size=d.of(4, 9), fill_value=d.of(-1, 7)),
        lambda x, size, fill_value: sized(np.flatnonzero(x), size, fill_value),
        case="sized",
        grad=INTEGERS,
    ),
    record(
        "unravel_index",
        lambda d: d.call(d.array("i", [(3,), ()], (0, 5)), shape=d.of((2, 3), (6,), (1, 2, 3))),
        call=lambda f, i, shape: f(i, shape),
        grad=INTEGERS,
    ),
    record(
        "ravel_multi_index",
        lambda d: d.call(
            [d.array("i", [(3,)], (-9, 9)), d.array("i", [(3,)], (-9, 9))],
            dims=d.of((2, 3), (4, 1)),
            mode=d.of("wrap", "clip"),
            order=d.of("C", "F"),
        ),
        call=lambda f, places, **options: f(tuple(places), **options),
        grad=INTEGERS,
    ),
]


def sized(values: Any, size: int, fill: Any) -> Any:
    """A vector, cut or filled up to a size."""
    return np.append(values, np.full(size, fill))[:size]


ORDERED = [
    record("sort", lambda d: d.call(x := d.array(special=True), axis=d.axis(x, none=True))),
    record(
        "argsort",
        lambda d: d.call(x := d.array(special=True), axis=d.axis(x, none=True)),
        call=lambda f, x, axis: f(x, axis, stable=True),
        grad=INTEGERS,
    ),
    record(
        "lexsort",
        lambda d: d.call([d.array("fi", [(4,)]), d.array("bi", [(4,)])], axis=d.of(0, -1)),
        grad=INTEGERS,
    ),
    record("sort_complex", lambda d: d.call(d.array("fic", RANKED)), grad=(0,)),
    record(
        "partition",
        lambda d: d.call(d.array("fi", [(2, 4), (4,)]), kth=d.of(1, -1, 0)),
        call=lambda f, x, kth: f(x, kth)[..., kth],
    ),
    record(
        "argpartition",
        lambda d: d.call(d.array("fi", [(2, 4), (4,)]), kth=d.of(1, -1, 0)),
        call=lambda f, x, kth: f(x, kth)[..., kth],
        grad=INTEGERS,
    ),
    record(
        "searchsorted",
        lambda d: d.call(
            np.sort(d.array("fiu", LISTS, special=True)),
            d.array("fiu", [(2, 3), ()], special=True),
            side=d.of("left", "right"),
        ),
        grad=INTEGERS,
    ),
    record(
        "digitize",
        lambda d: d.call(
            d.array("fi", [(2, 3), ()]),
            np.sort(d.array("fi", LISTS))[:: d.of(1, -1)],
            right=d.of(False, True),
        ),
        grad=INTEGERS,
    ),
]

SETS = [
    record(
        "isin",
        lambda d: d.call(
            d.array("fiu", FULL), d.array("fiu", [(3,), (0,)]), invert=d.of(False, True)
        ),
        grad=INTEGERS,
    ),
    record(
        "unique",
        lambda d: d.call(
            d.array(shape=[(2, 3), (0,), ()], special=True), equal_nan=d.of(True, False)
        ),
        call=lambda f, x, **options: f(x, True, True, True, **options),
        **UNSIZED,
    ),
    record(
        "unique",
        lambda d: d.call(d.array("bi", [(3, 2)], (0, 1)), axis=d.of(0, 1, -1)),
        case="axis",
        **UNSIZED,
    ),
    record(
        "unique",
        lambda d: d.call(d.array("if", [(5,)]), size=d.of(4, 7), fill_value=d.of(9, -9)),
        lambda x, size, fill_value: sized(np.unique(x), size, fill_value),
        case="sized",
        grad=INTEGERS,
    ),
    *(
        record(
            name,
            lambda d: d.call(d.array("fi", [(2, 3), (0,)])),
            call=lambda f, x: tuple(f(x)),
            **UNSIZED,
        )
        for name in ("unique_all", "unique_counts", "unique_inverse")
    ),
    record("unique_values", lambda d: d.call(d.array("fi", [(2, 3), (0,)])), np.unique, **UNSIZED),
    *(
        record(
            name,
            lambda d: d.call(x := d.array("iu", LISTS), d.array(x.dtype.name, LISTS)),
            **UNSIZED,
        )
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d")
    ),
    *(
        record(
            name,
            lambda d: d.call(
                d.array("i", [(4,)]), d.array("i", [(3,)]), size=d.of(3, 9), fill_value=d.of(-7)
            ),
            lambda x, y, size, fill_value, name=name: sized(
                getattr(np, name)(x, y), size, fill_value
            ),
            case="sized",
            grad=INTEGERS,
        )
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d")
    ),
]

RECORDS = [*PICKED, *PLACED, *PLACES, *ORDERED, *SETS]
