"""`given_mesh` is Hypothesis's own test: it finds what is wrong, and goes with all decorators."""

import datetime
import functools
import re
import time

import numpy as np
import pytest
from hypothesis import example, given, reproduce_failure, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import DeadlineExceeded, InvalidArgument

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import given_mesh
from minijax.testing.strategies import per_device_inputs

pytestmark = pytest.mark.feature("UX-08")

SEARCH = settings(max_examples=100, derandomize=True, database=None, deadline=None)
STOCK = datetime.timedelta(milliseconds=200)


def ring(x, steps):
    """What a device has after adding up so many blocks that come round a ring."""
    n = lax.axis_size("x")
    total = moving = x
    for _ in range(steps):
        moving = lax.ppermute(moving, "x", [(i, (i + 1) % n) for i in range(n)])
        total = total + moving
    return total


def shifted(x, by):
    """The block of the device that is so far to the left."""
    n = lax.axis_size("x")
    return lax.pshuffle(x, "x", [(i - by) % n for i in range(n)])


def block_of(x, number):
    return lax.all_gather(x, "x")[number]


def scan(x, wrong_for=None):
    """The sum of all blocks up to the own one; for one size, the own one counts twice."""
    own = lax.associative_scan(jnp.add, lax.all_gather(x, "x"))[lax.axis_index("x")]
    return own + x if lax.axis_size("x") == wrong_for else own


def total_of(x):
    return np.broadcast_to(x.sum(0, keepdims=True, dtype=x.dtype), x.shape)


def total_over_both(x):
    return np.broadcast_to(x.sum((0, 1), keepdims=True, dtype=x.dtype), x.shape)


def greatest_of(x):
    return np.broadcast_to(x.max(0, keepdims=True), x.shape)


def sums_of(x):
    return np.cumsum(x, 0, dtype=x.dtype)


def counterexample(function, model, **options):
    """The size of the mesh and the blocks that Hypothesis ends with, or None."""
    failed = []

    @SEARCH
    @given_mesh("x", x=functools.partial(per_device_inputs, **options))
    def check(mesh, x):
        mapped = jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        try:
            np.testing.assert_array_equal(mapped(x), model(x))
        except AssertionError:
            failed.append((mesh.size, x))
            raise

    try:
        check()
    except AssertionError:
        return failed[-1]
    return None


# For each fault the right twin, what both are to compute, and the least size that shows it.
FAULTS = {
    "sum without the last step": (
        lambda x: ring(x, max(0, lax.axis_size("x") - 2)),
        lambda x: ring(x, lax.axis_size("x") - 1),
        total_of,
        2,
    ),
    "maximum that is the last block": (
        lambda x: block_of(x, -1),
        lambda x: lax.pmax(x, "x"),
        greatest_of,
        2,
    ),
    "maximum that is the first block": (
        lambda x: block_of(x, 0),
        lambda x: lax.pmax(x, "x"),
        greatest_of,
        2,
    ),
    "shift to the other side": (
        lambda x: shifted(x, -1),
        lambda x: shifted(x, 1),
        lambda x: np.roll(x, 1, 0),
        3,
    ),
    **{
        f"scan that is wrong for {size}": (
            functools.partial(scan, wrong_for=size),
            scan,
            sums_of,
            size,
        )
        for size in (3, 5, 6, 7)
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found_on_the_smallest_mesh_that_shows_it(fault):
    wrong, _, model, size = FAULTS[fault]
    found, x = counterexample(wrong, model)
    assert (found, x.shape) == (size, (size,))


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("fault", list(FAULTS)[:-3])
def test_right_twin_of_a_fault_passes(fault):
    _, right, model, _ = FAULTS[fault]
    assert counterexample(right, model) is None


def test_meshes_have_from_one_to_eight_devices_along_an_axis():
    sizes = set()

    @SEARCH
    @given_mesh("x")
    def collect(mesh):
        sizes.add(mesh.size)

    collect()
    assert sizes == set(range(1, 9))


def test_meshes_of_two_axes_have_all_shapes_of_eight_devices_at_most():
    shapes = set()

    @SEARCH
    @given_mesh("a", "b")
    def collect(mesh):
        shapes.add(tuple(mesh.shape.items()))

    collect()
    assert shapes == {(("a", a), ("b", b)) for a in range(1, 9) for b in range(1, 9) if a * b <= 8}


SUITE = """
import functools
import unittest

import numpy as np
import pytest
from hypothesis import assume, example, seed, settings
from hypothesis import strategies as st

from minijax.testing import given_mesh
from minijax.testing.strategies import per_device_inputs

blocks = functools.partial(per_device_inputs, shape=(2,))
few = settings(max_examples=4, database=None)


@pytest.fixture(scope="module")
def three():
    return 3


@few
@given_mesh("x", x=blocks)
def test_settings_above(mesh, x):
    assert x.shape == (mesh.size, 2)


@given_mesh("x", x=blocks)
@few
def test_settings_below(mesh, x):
    assert x.shape == (mesh.size, 2)


@few
@given_mesh("x", x=blocks)
def test_fixture_before_the_mesh(three, mesh, x):
    assert (three, x.shape) == (3, (mesh.size, 2))


@pytest.mark.parametrize("k", [1, 2])
@few
@given_mesh("x", n=st.integers(0, 3))
def test_parameter_above(mesh, n, k, three):
    assert k in (1, 2)
    assert n <= three


@few
@given_mesh("x")
@pytest.mark.parametrize("k", [1, 2])
def test_parameter_below(k, mesh):
    assert k in (1, 2)


@seed(1)
@few
@given_mesh("x", "y")
def test_other_name_of_the_mesh(devices_of_two_axes):
    assert devices_of_two_axes.axis_names == ("x", "y")


@example({"x": 3}, np.arange(3))
@few
@given_mesh("x", x=per_device_inputs)
@example(mesh={"x": 5}, x=np.arange(5))
def test_examples_above_and_below(mesh, x):
    assume(mesh.size > 1)
    assert len(x) == mesh.size


@few
@given_mesh("x", data=st.data())
def test_data(mesh, data):
    assert data.draw(st.integers(0, mesh.size)) <= mesh.size


class TestMethods:
    @given_mesh("x", x=blocks)
    @few
    def test_method(self, mesh, x):
        assert isinstance(self, TestMethods)

    @example({"x": 2}, 4)
    @pytest.mark.parametrize("k", [1, 2])
    @few
    @given_mesh("x", n=st.integers())
    @example(mesh={"x": 1}, n=5)
    def test_all_at_once(self, three, k, mesh, n):
        assert three == 3
        assert mesh.size <= 8

    @staticmethod
    @few
    @given_mesh("x")
    def test_static(mesh):
        assert mesh.size <= 8


class TestUnit(unittest.TestCase):
    @given_mesh("x")
    @few
    def test_of_unittest(self, mesh):
        self.assertLessEqual(mesh.size, 8)
"""


def test_decorators_of_hypothesis_and_pytest_go_above_and_below(pytester):
    pytester.makepyfile(SUITE)
    pytester.inline_run("-p", "no:cacheprovider").assertoutcome(passed=15)


FAILING = """
import functools

import numpy as np
from hypothesis import settings

from minijax.testing import given_mesh
from minijax.testing.strategies import per_device_inputs


@settings(max_examples=100, database=None, derandomize=True, print_blob=True)
@given_mesh("x", x=functools.partial(per_device_inputs, dtypes=["int32"]))
def test_sizes(mesh, x):
    assert mesh.size < 3 or x.ndim < 2
"""


def test_report_is_code_that_replays(pytester):
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    text = str(result.stdout)
    assert "def on_devices" not in text
    assert "Explanation:" not in text
    result.stdout.fnmatch_lines(["*Failing test case: test_sizes(", "*mesh={'x': 3},"])
    blocks = re.search(r"x=(array\(.*?\)),", text.replace("\nE", ""), re.DOTALL)[1]
    assert eval(blocks, {"array": np.array, "int32": np.int32}).shape == (3, 2)
    blob = re.search(r"@reproduce_failure\((.*?)\)", text)[1]

    @reproduce_failure(*eval(blob))
    @given_mesh("x", x=functools.partial(per_device_inputs, dtypes=["int32"]))
    def test_sizes(mesh, x):
        assert (mesh.size, x.shape) != (3, (3, 2))

    with pytest.raises(AssertionError):
        test_sizes()


def test_example_takes_the_sizes_that_a_report_shows():
    seen = []

    @settings(max_examples=1, phases=["explicit"])
    @given_mesh("x", n=st.integers())
    @example(mesh={"x": 3}, n=7)
    @example(mesh={"x": 9}, n=8)
    def check(mesh, n):
        seen.append((dict(mesh.shape), n))

    check()
    assert seen == [({"x": 3}, 7), ({"x": 9}, 8)]


def test_example_takes_a_mesh():
    seen = []
    with jax.cpu_devices(8):
        own = jax.make_mesh((2,), ("x",))

    @settings(max_examples=1, phases=["explicit"])
    @given_mesh("x")
    @example(own)
    def check(mesh):
        seen.append(mesh)

    check()
    assert seen == [own]


def test_example_without_a_mesh_is_refused():
    @settings(max_examples=1, phases=["explicit"])
    @given_mesh("x")
    @example(3)
    def check(mesh):
        raise NotImplementedError

    with pytest.raises(TypeError, match="an example's mesh is neither a mesh nor sizes"):
        check()


def sleep_on_each(mesh):
    time.sleep(0.3)


@pytest.mark.parametrize("above", [True, False])
def test_deadline_that_nobody_asks_for_is_not_in_force(above):
    stock = settings(max_examples=1, deadline=STOCK, database=None)
    test = given_mesh("x")(sleep_on_each if above else stock(lambda mesh: time.sleep(0.3)))
    (stock(test) if above else test)()


def test_deadline_that_is_asked_for_is_in_force():
    wanted = settings(max_examples=1, deadline=20, database=None, phases=["generate"])
    with pytest.raises(DeadlineExceeded):
        wanted(given_mesh("x")(sleep_on_each))()


def test_second_given_is_refused_as_hypothesis_does():
    twice = given(n=st.integers())(given_mesh("x")(lambda mesh, n: None))
    with pytest.raises(InvalidArgument, match="more than once"):
        twice()


def test_second_settings_are_refused_as_hypothesis_does():
    once = SEARCH(given_mesh("x")(lambda mesh: None))
    with pytest.raises(InvalidArgument, match="already been decorated with a settings object"):
        SEARCH(once)


def test_argument_that_the_test_lacks_is_refused_as_hypothesis_does():
    wrong = given_mesh("x", y=per_device_inputs)(lambda mesh, x: None)
    with pytest.raises(InvalidArgument, match="got an unexpected keyword argument 'y'"):
        wrong()


def test_failure_is_replayed_first_from_the_database():
    database = InMemoryExampleDatabase()

    def sizes_until_failure():
        sizes = []

        @settings(max_examples=100, database=database)
        @given_mesh("x", x=per_device_inputs)
        def check(mesh, x):
            sizes.append(mesh.size)
            assert mesh.size < 5

        with pytest.raises(AssertionError):
            check()
        return sizes

    assert sizes_until_failure()[0] == 1
    assert sizes_until_failure()[0] == 5


def notes_of(function, model, names=("x",), **options):
    """What is added to a counterexample."""

    @SEARCH
    @given_mesh(*names, x=functools.partial(per_device_inputs, **options))
    def check(mesh, x):
        mapped = jax.shard_map(function, mesh=mesh, in_specs=P(*names), out_specs=P(*names))
        np.testing.assert_allclose(mapped(x), model(x), rtol=1e-5)

    with pytest.raises(AssertionError) as caught:
        check()
    return "\n".join(caught.value.__notes__).partition("By name, ")[2].splitlines()[1:]


def two_steps_short_for_eight(x):
    n = lax.axis_size("x")
    return ring(x, n - 3 if n == 8 else n - 1)


@pytest.mark.parametrize(
    ("function", "model", "options", "expected"),
    [
        (
            two_steps_short_for_eight,
            total_of,
            {"dtypes": ["int32"]},
            [
                "  device 0 lacks B and C; expected A…H",
                "  device 1 lacks C and D; expected A…H",
                "  device 2 lacks D and E; expected A…H",
                "  device 3 lacks E and F; expected A…H",
                "  and so on: 8 devices in all",
            ],
        ),
        (
            FAULTS["sum without the last step"][0],
            total_of,
            {"shape": (2,)},
            ["  device 0 lacks B₀; expected A₀+B₀", "  device 1 lacks A₀; expected A₀+B₀"],
        ),
        (lambda x: lax.psum(x, "x") + 2 * x, lambda x: x, {}, ["  device 0 has 3A; expected A"]),
        (lambda x: 0 * x, lambda x: x, {}, ["  device 0 has 0; expected A"]),
        (
            lambda x: lax.psum(x, "x"),
            lambda x: x,
            {},
            ["  device 0 has B too much; expected A", "  device 1 has A too much; expected B"],
        ),
        (
            lambda x: lax.pmean(x, "x"),
            total_of,
            {"dtypes": ["float32"]},
            [
                "  device 0 has 0.5(A+B); expected A+B",
                "  device 1 has 0.5(A+B); expected A+B",
            ],
        ),
    ],
    ids=["two steps short", "elements", "factor", "nothing", "too much", "mean"],
)
def test_counterexample_says_whose_contribution_is_missing(function, model, options, expected):
    assert notes_of(function, model, **options) == expected


def test_counterexample_on_two_axes_names_positions():
    found = notes_of(lambda x: lax.psum(x, "x"), total_over_both, names=("x", "y"), shape=())
    assert found[0] == "  device (x=0, y=0) lacks B; expected A+B"


def test_counterexample_of_what_is_not_linear_has_no_terms():
    assert notes_of(lambda x: x * x, lambda x: x * x + 1) == []


def test_counterexample_without_a_comparison_of_numpy_has_no_terms():
    @SEARCH
    @given_mesh("x", x=per_device_inputs)
    def check(mesh, x):
        assert x.shape[0] < 3

    with pytest.raises(AssertionError) as caught:
        check()
    assert "By name" not in "".join(caught.value.__notes__)
