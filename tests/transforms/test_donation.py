"""Donation takes the arguments that the user has named, however a call passes them."""

import functools
import inspect
import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = [
    pytest.mark.feature("RB-01"),
    pytest.mark.filterwarnings("ignore:Some donated buffers were not usable"),
]


STATIC = 3


@pytest.fixture(autouse=True)
def devices():
    with minijax.cpu_devices(8):
        yield


def two(a, b):
    return a + 1, b + 2


def with_default(a, b=None):
    return a + 1 if b is None else (a + 1, b + 2)


def with_static(a, n, b):
    return a + n, b * n


def of_trees(a, *, b):
    return minijax.tree.map(lambda x: x + 1, (a, b))


class Model:
    def method(self, a, b):
        return a + 1, b + 2


def on_one_device(i):
    return jnp.arange(8.0) + i


def on_four_devices(i):
    mesh = minijax.make_mesh((4,), ("i",), devices=minijax.devices()[:4])
    return minijax.device_put(on_one_device(i), NamedSharding(mesh, P("i")))


def calls(function, values):
    """Every way to pass `values`, which are by name: some by position, the others by keyword."""
    parameters = inspect.signature(function).parameters
    most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())
    names = [name for name in parameters if name in values]
    for count in range(min(most, len(names)) + 1):
        if names[:count] == list(parameters)[:count]:
            yield names[:count], names[count:][::-1]


def check(call, function, values, donated, ways=None):
    """Calls in every way, three times, as later calls may take another path."""
    for by_position, by_name in ways or calls(function, values()):
        for _ in range(3):
            given = values()
            call(*[given[k] for k in by_position], **{k: given[k] for k in by_name})
            for name, value in given.items():
                deleted = [x.is_deleted() for x in minijax.tree.leaves(value) if x is not STATIC]
                assert deleted == [name == donated] * len(deleted), (by_position, by_name, name)


NAMED = [
    (two, {}, 2, {"donate_argnums": 1}, "b"),
    (two, {}, 2, {"donate_argnums": -1}, "b"),
    (two, {}, 2, {"donate_argnames": "b"}, "b"),
    (two, {}, 2, {"donate_argnums": -2}, "a"),
    (two, {}, 2, {"donate_argnames": ["a"]}, "a"),
    (with_default, {}, 1, {"donate_argnums": -1}, "b"),
    (with_default, {}, 1, {"donate_argnums": -2}, "a"),
    (with_default, {}, 2, {"donate_argnums": -1}, "b"),
    (functools.partial(two, b=1.0), {}, 1, {"donate_argnums": 0}, "a"),
    (Model().method, {}, 2, {"donate_argnums": -1}, "b"),
    (Model().method, {}, 2, {"donate_argnames": "a"}, "a"),
    *(
        (with_static, static, 3, donation, donated)
        for static, (donation, donated) in itertools.product(
            [{"static_argnums": 1}, {"static_argnums": -2}, {"static_argnames": "n"}],
            [
                ({"donate_argnums": 2}, "b"),
                ({"donate_argnums": -1}, "b"),
                ({"donate_argnames": "b"}, "b"),
                ({"donate_argnums": -3}, "a"),
            ],
        )
    ),
]


@pytest.mark.parametrize("array", [on_one_device, on_four_devices])
@pytest.mark.parametrize(("function", "static", "count", "donation", "donated"), NAMED)
def test_what_is_named_is_deleted_and_nothing_else(
    function, static, count, donation, donated, array
):
    jitted = minijax.jit(function, **static, **donation)
    names = list(inspect.signature(function).parameters)[:count]
    values = lambda: {k: STATIC if k == "n" else array(i) for i, k in enumerate(names)}
    check(jitted, function, values, donated)


@pytest.mark.parametrize("donation", [{"donate_argnums": -1}, {"donate_argnames": "b"}])
def test_stages_take_what_is_named(donation):
    jitted = minijax.jit(two, **donation)
    values = lambda: {"a": on_one_device(0), "b": on_one_device(1)}
    for way in calls(two, values()):
        given = values()
        lowered = jitted.lower(*[given[k] for k in way[0]], **{k: given[k] for k in way[1]})
        info = minijax.tree.leaves(lowered.args_info, is_leaf=lambda x: hasattr(x, "donated"))
        assert [x.donated for x in info] == [False, True]
        check(lowered.compile(), two, values, "b", [way])


def test_leaves_of_trees_are_donated_together():
    values = lambda: {
        "a": {"z": on_one_device(0), "c": (on_one_device(1), on_one_device(2))},
        "b": [on_one_device(3), {"y": on_one_device(4)}],
    }
    check(minijax.jit(of_trees, donate_argnames="b"), of_trees, values, "b")
    check(minijax.jit(of_trees, donate_argnums=-1), of_trees, values, "a")


@pytest.mark.parametrize(
    ("static", "donated", "deleted"),
    [((), -1, 3), ((), 1, 1), (2, -1, 3), (-1, -2, 2), (9, -1, 3), ((), 9, None)],
)
def test_ends_of_variadic_calls_are_those_of_the_call(static, donated, deleted):
    call = minijax.jit(
        lambda *xs: [x + 1 for x in xs], static_argnums=static, donate_argnums=donated
    )
    fixed = static % 4 if isinstance(static, int) and static < 4 else None
    given = [STATIC if i == fixed else on_one_device(i) for i in range(4)]
    call(*given)
    assert [i for i, x in enumerate(given) if x is not STATIC and x.is_deleted()] == (
        [] if deleted is None else [deleted]
    )


def test_methods_of_classes_keep_their_objects():
    class Layer:
        @functools.partial(minijax.jit, static_argnums=0, donate_argnums=-1)
        def step(self, a, b):
            return a + 1, b + 2

    layer = Layer()
    values = lambda: {"a": on_one_device(0), "b": on_one_device(1)}
    check(layer.step, layer.step, values, "b", calls(two, values()))


@pytest.mark.parametrize("donated", [1, -1])
def test_maps_take_what_is_named(donated):
    mapped = minijax.pmap(two, donate_argnums=donated, devices=minijax.devices()[:4])
    own = minijax.pmap(lambda x: x, devices=minijax.devices()[:4])
    for _ in range(2):
        a, b = own(np.ones((4, 2))), own(np.ones((4, 2)))
        mapped(a, b)
        assert (a.is_deleted(), b.is_deleted()) == (False, True)
        mapped(a, b=own(np.ones((4, 2))))
        assert not a.is_deleted()
