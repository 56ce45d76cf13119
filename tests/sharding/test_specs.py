"""`PartitionSpec`: entries, sets of reduced axes, equality, printing."""

import operator
import pickle

import pytest

from minijax import P

pytestmark = pytest.mark.feature("MS-09")


@pytest.mark.parametrize(
    ("spec", "entries"),
    [
        (P("x", None), ("x", None)),
        (P(("x",)), ("x",)),
        (P(()), (None,)),
        (P(["x", "y"]), (("x", "y"),)),
        (P("x") + P("y"), ("x", "y")),
        (operator.add(P("x"), ("y",)), ("x", "y")),
        (operator.add(("y",), P("x")), ("y", "x")),
        (P("x").update(partitions=("y", None)), ("y", None)),
    ],
)
def test_spec_has_entries(spec: P, entries: tuple[object, ...]) -> None:
    assert tuple(spec) == entries
    assert spec.partitions == entries


def test_specs_differ_by_trailing_none() -> None:
    assert P("x") != P("x", None)
    assert P(("x",)) == P("x")


def test_spec_is_no_tuple() -> None:
    assert P("x") != ("x",)
    assert P("x", "y")[:1] == ("x",)
    assert P("x", "y")[1] == "y"


def test_equal_specs_have_equal_hashes() -> None:
    assert hash(P(("x",), unreduced={"y"})) == hash(P("x", unreduced=frozenset({"y"})))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (P(), "P()"),
        (P("x"), "P('x',)"),
        (P(None, ("x", "y")), "P(None, ('x', 'y'))"),
        (P(P.UNCONSTRAINED), "P(UNCONSTRAINED,)"),
        (P("x", unreduced={"y"}, reduced={"z"}), "P('x', unreduced={'y'}, reduced={'z'})"),
    ],
)
def test_spec_prints_like_jax(spec: P, text: str) -> None:
    assert repr(spec) == text


@pytest.mark.parametrize(
    ("entries", "sets", "error", "text"),
    [
        (("x",), {"unreduced": {"x"}}, ValueError, r"both unreduced and in an entry: \['x'\]"),
        (("x",), {"reduced": {"x"}}, ValueError, "both reduced and in an entry"),
        ((), {"unreduced": {"x"}, "reduced": {"x"}}, ValueError, "both unreduced and reduced"),
        ((), {"unreduced": "x"}, TypeError, "must be a set of names"),
        ((), {"reduced": {None}}, ValueError, "must not contain None"),
    ],
)
def test_spec_refuses(
    entries: tuple[str, ...], sets: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        P(*entries, **sets)


def test_sum_of_specs_unites_their_sets() -> None:
    assert (P("x", unreduced={"y"}) + P("z", unreduced={"w"})).unreduced == {"y", "w"}


def test_spec_finds_entries() -> None:
    assert P("x", "y").index("y") == 1
    assert P(None, None).count(None) == 2
    assert "x" in P("x", "y")


@pytest.mark.parametrize("spec", [P(), P("x", P.UNCONSTRAINED), P(unreduced={"x"}, reduced={"y"})])
def test_spec_survives_pickling(spec: P) -> None:
    assert pickle.loads(pickle.dumps(spec)) == spec
