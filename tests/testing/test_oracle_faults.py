"""Programs whose devices cannot go on together: `testing.simulate` says who waits where for whom.

Each fault is planted in a small program of four devices, and its report is read for what a person
needs: each device with its collective, operand and line, and what does not fit.
"""

import inspect
import time

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import CollectiveMismatch, simulate

FOUR = {"x": 4}
SQUARE = {"x": 2, "y": 2}
V = np.arange(4, dtype=np.float32)
RING = [(i, (i + 1) % 4) for i in range(4)]


@pytest.fixture(autouse=True)
def soon():
    begin = time.perf_counter()
    yield
    assert time.perf_counter() - begin < 2


def report(f, mesh=FOUR, axes=("x",), v=V):
    """The text of the mismatch, and the lines on each device."""
    with pytest.raises(CollectiveMismatch) as info:
        simulate(f, mesh, P(*axes), P(*axes), check_vma=False)(v)
    return str(info.value), {
        tuple(i for _, i in place): text for place, text in info.value.devices.items()
    }


def line_of(f, code):
    """How a report names the line of `f` that contains some code, and the code."""
    lines, first = inspect.getsourcelines(f)
    (number,) = (i for i, line in enumerate(lines) if code in line)
    return f"at test_oracle_faults.py:{first + number} in {f.__qualname__}: {lines[number].strip()}"


def test_device_dependent_branch():
    def f(v):
        if lax.axis_index("x") == 2:
            return v
        return lax.psum(v, "x")

    text, devices = report(f)
    assert devices[2,] == "has finished"
    assert devices[0,] == f"waits in psum over x of f32[1], for (x=2), {line_of(f, 'lax.psum')}"
    assert text.startswith(
        "testing.simulate: the device (x=0) waits in psum over x of f32[1] for (x=2), which has "
        "finished."
    )


def test_device_dependent_branch_of_a_staged_cond():
    @jax.jit
    def f(v):
        return lax.cond(lax.axis_index("x") < 3, lambda u: lax.psum(u, "x"), lambda u: u, v)

    text, devices = report(f)
    assert devices[3,] == "has finished"
    assert "for (x=3)" in devices[1,]
    assert "lax.cond(lax.axis_index" in devices[1,]
    assert "which has finished" in text


def test_wrong_order_of_two_collectives():
    def f(v):
        if lax.axis_index("x") == 0:
            total = lax.psum(v, "x")
            return lax.pmax(v, "x") + total
        largest = lax.pmax(v, "x")
        return lax.psum(v, "x") + largest

    text, devices = report(f)
    assert devices[0,].startswith("waits in psum over x of f32[1], for (x=1), (x=2), (x=3), at")
    assert devices[3,] == f"waits in pmax over x of f32[1], for (x=0), {line_of(f, 'largest = ')}"
    assert "expected  the same collective: psum on (x=0); pmax on (x=1), (x=2), (x=3)" in text


def test_another_primitive():
    def f(v):
        reduce = lax.pmin if v[0] == 1 else lax.pmax
        return reduce(v, "x")

    text, _ = report(f)
    assert "the same collective: pmax on (x=0), (x=2), (x=3); pmin on (x=1)" in text


def test_wrong_shape():
    def f(v):
        if lax.axis_index("x") == 3:
            v = jnp.concatenate([v, v])
        return lax.psum(v, "x")[:1]

    text, devices = report(f)
    assert "the same shapes of operands: (1) on (x=0), (x=1), (x=2); (2) on (x=3)" in text
    assert devices[3,].startswith("waits in psum over x of f32[2], for (x=0), (x=1), (x=2), at")


def test_wrong_dtype():
    def f(v):
        if lax.axis_index("x") == 1:
            v = v.astype(np.int32)
        return lax.psum(v, "x")

    text, devices = report(f)
    assert "the same dtypes of operands: float32 on (x=0), (x=2), (x=3); int32 on (x=1)" in text
    assert "of i32[1]" in devices[1,]


def test_wrong_axis():
    def f(v):
        axis = "y" if (lax.axis_index("x") == 0) & (lax.axis_index("y") == 0) else "x"
        return lax.psum(v, axis)

    text, devices = report(f, SQUARE, ("x", "y"), V.reshape(2, 2))
    assert devices[0, 0].startswith("waits in psum over y of f32[1,1], for (x=0, y=1), at")
    assert devices[1, 0].startswith("waits in psum over x of f32[1,1], for (x=0, y=0), at")
    assert devices[0, 1] == devices[1, 1] == "has finished"
    assert "the same axes: y on (x=0, y=0); x on (x=1, y=0)" in text


def test_different_permutations():
    def f(v):
        back = [(d, s) for s, d in RING]
        return lax.ppermute(v, "x", back if lax.axis_index("x") == 3 else RING)

    text, devices = report(f)
    assert "the same perm: ((0, 1), (1, 2), (2, 3), (3, 0)) on (x=0), (x=1), (x=2); " in text
    assert "perm=((1, 0), (2, 1), (3, 2), (0, 3)), for (x=0), (x=1), (x=2)" in devices[3,]


def test_duplicate_destination():
    def f(v):
        return lax.ppermute(v, "x", [(0, 1), (2, 1)])

    with pytest.raises((CollectiveMismatch, ValueError), match="destination"):
        simulate(f, FOUR, P("x"), P("x"))(V)


def test_duplicate_destination_in_the_model():
    def f(v):
        return lax.ppermute_p.bind(v, axis_name=("x",), perm=((0, 1), (2, 1)))

    text, devices = report(f)
    assert "destination 1 appears twice in perm ((0, 1), (2, 1))" in text
    assert "ppermute over x of f32[1] perm=((0, 1), (2, 1))" in devices[0,]


def test_one_device_skips_a_step():
    def f(v):
        for step in range(3):
            if step != 1 or lax.axis_index("x") != 2:
                v = lax.psum(v, "x")
        return v

    text, devices = report(f)
    assert devices[2,] == "has finished"
    assert "waits in psum over x of f32[1] for (x=2), which has finished" in text


def test_unequal_loop_trip_counts():
    def f(v):
        def body(carry):
            return carry[0] + 1, lax.ppermute(carry[1], "x", RING)

        return lax.while_loop(lambda c: c[0] < lax.axis_index("x") + 1, body, (0, v))[1]

    text, devices = report(f)
    assert devices[0,] == "has finished"
    assert devices[3,].startswith("waits in ppermute over x of f32[1] perm=")
    assert "for (x=0), which has finished" in text


def test_mismatched_groups():
    def f(v):
        groups = [[0, 1], [2, 3]] if lax.axis_index("x") < 2 else [[0, 2], [1, 3]]
        return lax.psum(v, "x", axis_index_groups=groups)

    text, devices = report(f)
    assert "the same axis_index_groups: ((0, 1), (2, 3)) on (x=0), (x=1); " in text
    assert "axis_index_groups=((0, 2), (1, 3))" in devices[3,]


def test_different_roots_of_a_broadcast():
    def f(v):
        return lax.pbroadcast(v, "x", int(lax.axis_index("x")) // 2)

    text, devices = report(f)
    assert "the same source: 0 on (x=0), (x=1); 1 on (x=2), (x=3)" in text
    assert "pbroadcast over x of f32[1] source=1" in devices[3,]


def test_different_dimensions_of_an_exchange():
    def f(v):
        split = 0 if lax.axis_index("x") else 1
        return lax.all_to_all(jnp.ones((4, 4)), "x", split, split, tiled=True)

    text, _ = report(f)
    assert "the same " in text
    assert "1 on (x=0); 0 on (x=1), (x=2), (x=3)" in text


def test_one_device_raises():
    def f(v):
        total = lax.psum(v, "x")
        if lax.axis_index("x") == 1:
            raise KeyError("no such weight")
        return lax.pmax(total, "x")

    with pytest.raises(KeyError, match="no such weight") as info:
        simulate(f, FOUR, P("x"), P("x"))(V)
    (note,) = info.value.__notes__
    assert note.startswith("on the device (x=1) of those simulated; the devices:")
    assert "(x=0)  waits in pmax over x of f32[1], for (x=1), (x=2), (x=3)" in note
    assert "(x=1)  has raised KeyError: 'no such weight'" in note
    assert "(x=2)  was still to go on" in note


def test_one_device_finishes_early():
    def f(v):
        for _ in range(int(lax.axis_index("x")) + 1):
            v = lax.psum(v, "x")
        return v

    text, devices = report(f)
    assert devices[0,] == "has finished"
    assert "the device (x=1) waits in psum over x of f32[1] for (x=0), which has finished" in text


def test_devices_that_wait_in_a_circle():
    def f(v):
        first, second = ("x", "y") if lax.axis_index("x") == lax.axis_index("y") else ("y", "x")
        return lax.psum(lax.psum(v, first), second)

    text, devices = report(f, SQUARE, ("x", "y"), V.reshape(2, 2))
    assert len(devices) == 4
    assert "the same axes: x on (x=0, y=0); y on (x=1, y=0)" in text


@pytest.mark.parametrize("staged", [True, False])
def test_an_endless_loop(staged):
    def f(v):
        def goes_on(u):
            return u[0] >= lax.axis_index("x") - 2

        if staged:
            return lax.while_loop(goes_on, lambda u: u + 0, v * 0)
        while goes_on(v):
            v = v + 1
        return v

    with pytest.raises(RuntimeError, match=r"\(x=0\) has done 1000 operations") as info:
        simulate(f, FOUR, P("x"), P("x"), max_operations=1000)(V)
    assert "raise max_operations" in str(info.value)


def test_devices_that_are_stopped_clean_up():
    left = []

    def f(v):
        try:
            if lax.axis_index("x") == 3:
                return v
            return lax.psum(v, "x")
        finally:
            left.append(v.shape)

    report(f)
    assert left == [(1,)] * 4


def test_a_fault_is_found_only_when_no_device_can_go_on():
    seen = []

    def f(v):
        if lax.axis_index("x") == 0:
            return lax.pmax(v, "x")
        for _ in range(3):
            v = lax.psum(v, "y")
            seen.append(int(lax.axis_index("y")))
        return v

    with pytest.raises(CollectiveMismatch):
        simulate(f, SQUARE, P("x", "y"), P("x", "y"))(V.reshape(2, 2))
    assert seen == [0, 1] * 3


def test_values_of_other_devices_are_refused():
    kept = []

    def f(v):
        kept.append(v)
        return v + kept[0]

    with pytest.raises(jax.errors.UnexpectedTracerError) as info:
        simulate(f, FOUR, P("x"), P("x"))(V)
    assert "leaked" in str(info.value) or "somebody else" in str(info.value)


def test_shapes_that_do_not_fit_are_refused_in_the_words_of_the_collective() -> None:
    run = simulate(lambda b: lax.psum_scatter(b, "x"), {"x": 4}, P("x"), P("x"))
    with pytest.raises(ValueError, match=r"psum_scatter: scatter_dimension 0 has size 2"):
        run(np.arange(8.0))
