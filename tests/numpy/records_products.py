"""Records of products of arrays."""

from __future__ import annotations

from typing import Any

from tests.numpy.records import Record

FLOATS = "the result is of floats where operands are integers"
MATMUL = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 1, 2, 3), (4, 3, 1)),
    ((3,), (2, 3, 1)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
)


def product(name: str, shapes: Any, dtypes: str = "fiuc", **options: Any) -> Record:
    """A record of a function of two arrays of certain shapes; of options of `given`, one each."""
    given = options.pop("given", {})

    def draw(d: Any) -> Any:
        left, right = d.of(*shapes)
        x = d.array(dtypes, [left])
        y = d.array(d.of(x.dtype.name, dtypes), [right])
        return d.call(x, y, **{name: d.of(*values) for name, values in given.items()})

    return Record(f"numpy.{name}", draw, **{"grad": (0, 1), "tolerance": 3, **options})


def einsum(subscripts: str, *shapes: Any) -> Record:
    draw = lambda d: d.call(*(d.array("fi", [shape]) for shape in shapes))
    call = lambda f, *xs: f(subscripts, *xs)
    grad = tuple(range(len(shapes)))
    return Record("numpy.einsum", draw, call=call, grad=grad, case=subscripts, tolerance=10)


RECORDS = [
    product("matmul", MATMUL, "fiubc"),
    product("dot", (*MATMUL[:4], ((), (2, 3)), ((), ()), ((2, 2, 3), (2, 3, 2)))),
    product("inner", (((2, 3), (4, 3)), ((3,), (3,)), ((), (3,)), ((0, 3), (2, 3)))),
    product("outer", (((2, 3), (4,)), ((3,), ()), ((0,), (3,)))),
    product("vdot", (((2, 3), (2, 3)), ((3,), (3,)), ((2, 3), (3, 2)))),
    product("vecdot", (((2, 3), (2, 3)), ((2, 1, 3), (4, 3)), ((3,), (3,))), given={"axis": [-1]}),
    product("matvec", (((2, 3), (3,)), ((4, 1, 2, 3), (2, 3)))),
    product("vecmat", (((3,), (3, 2)), ((2, 1, 3), (4, 3, 2)))),
    product("kron", (((2, 3), (3, 2)), ((3,), (2,)), ((), (2, 2)), ((2,), (2, 2)))),
    product(
        "tensordot",
        (((2, 3), (2, 3)), ((2, 3), (2, 3))),
        given={"axes": [((0, 1), (0, 1)), 0, ((1,), (1,)), ((-1, 0), (1, 0))]},
    ),
    product(
        "convolve",
        (((4,), (3,)), ((2,), (5,)), ((1,), (1,))),
        given={"mode": ["full", "same", "valid"]},
        kinds=FLOATS,
    ),
    product(
        "correlate",
        (((4,), (3,)), ((2,), (5,)), ((1,), (1,))),
        given={"mode": ["valid", "same", "full"]},
        kinds=FLOATS,
    ),
    product("cross", (((2, 3), (2, 3)), ((3,), (2, 1, 3))), "fiu"),
    einsum("ij->ji", (2, 3)),
    einsum("ii->i", (3, 3)),
    einsum("iij->", (2, 2, 3)),
    einsum("...i->...", (2, 1, 3)),
    einsum("ij,jk->ik", (2, 3), (3, 2)),
    einsum("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
    einsum("i,ij,j", (2,), (2, 3), (3,)),
    einsum("ij,ik,il->jkl", (2, 3), (2, 2), (2, 1)),
    einsum(",ij->ji", (), (2, 3)),
]
