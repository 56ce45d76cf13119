"""Programs for cores: what they compute, how they are transformed, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import config
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.sharding import PartitionSpec as P

DMA = pltpu.SemaphoreType.DMA
REGULAR = pltpu.SemaphoreType.REGULAR
FOLLOWED = pltpu.InterpretParams(detect_races=True)
X = np.arange(8, dtype=np.float32) + 1


def mesh_of(cores: int) -> Any:
    return pltpu.create_tensorcore_mesh("core", num_cores=cores)


def on_cores(
    body: Callable[..., None], cores: int = 1, interpret: Any = False
) -> Callable[..., Any]:
    """A function of x: what `body(x_ref, y_ref)` leaves in y, which is zero at first."""

    def run(x: Any) -> Any:
        def kernel(refs: Any) -> None:
            pl.core_map(mesh_of(cores), interpret=interpret)(lambda: body(*refs))

        return pl.run_state(kernel)((x, jnp.zeros_like(x)))[1]

    return run


def copy(x: Any, y: Any) -> None:
    """Each core copies its part of x."""
    size = x.shape[0] // lax.axis_size("core")
    part = pl.ds(lax.axis_index("core") * size, size)
    pl.run_scoped(lambda sem: pltpu.async_copy(x.at[part], y.at[part], sem).wait(), DMA)


@pytest.mark.feature("ST-05", "ST-06", "ST-07")
@pytest.mark.parametrize("cores", [1, 2, 4])
def test_cores_copy_their_parts(cores: int) -> None:
    function = on_cores(copy, cores)

    assert function(X).tolist() == X.tolist()
    assert minijax.jit(function)(X).tolist() == X.tolist()


@pytest.mark.feature("SM-12", "ST-06")
@pytest.mark.parametrize("transform", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_shard_map_over_cores_runs_the_same_program(transform: Any) -> None:
    def function(x: Any) -> Any:
        def kernel(refs: Any) -> None:
            minijax.shard_map(
                lambda: copy(*refs), mesh=mesh_of(2), in_specs=(), out_specs=None, check_vma=False
            )()

        return pl.run_state(kernel)((x, jnp.zeros_like(x)))[1]

    assert transform(function)(X).tolist() == X.tolist()


def test_jaxpr_shows_copies_as_they_are_written() -> None:
    text = str(minijax.make_jaxpr(on_cores(copy, 2))(X))

    assert "Ref{dma_sem[]} = new_ref" in text
    (start,) = re.findall(
        r"dma_start (\w)\[(\w):\2\+4\] -> (\w)\[\2:\2\+4\] (\w)\[\.\.\.\]\n", text
    )
    assert f"dma_wait {start[2]}[{start[1]}:{start[1]}+4] {start[3]}[...]\n" in text


@pytest.mark.feature("ST-06")
def test_transformed_programs_for_cores_agree_with_arrays() -> None:
    def body(x: Any, y: Any) -> None:
        core = lax.axis_index("core")

        @minijax.jit
        def scaled(v: Any) -> Any:
            return v * v * (1 + lax.axis_index("core"))

        def step(i: Any, _: Any) -> None:
            y[4 * core + i] = scaled(x[4 * core + i])

        lax.fori_loop(0, 4, step, None)

    function = on_cores(body, 2)
    weights = np.repeat(np.float32([1, 2]), 4)

    def all_of_them(x: Any) -> Any:
        gradient = minijax.grad(lambda x: jnp.sum(function(x)))(x)
        scanned = lax.scan(lambda c, v: (c, function(x * v)), 0, x[:2])[1]
        chosen = lax.cond(x[0] > 0, function, jnp.zeros_like, x)
        batch = minijax.vmap(function)(jnp.stack([x, 2 * x]))
        return minijax.jvp(function, (x,), (x,)), gradient, scanned, chosen, batch

    (out, tangent), gradient, scanned, chosen, batch = minijax.jit(all_of_them)(X)
    np.testing.assert_allclose(out, weights * X * X)
    np.testing.assert_allclose(tangent, 2 * weights * X * X)
    np.testing.assert_allclose(gradient, 2 * weights * X)
    np.testing.assert_allclose(scanned, [weights * X * X, 4 * weights * X * X])
    np.testing.assert_allclose(chosen, weights * X * X)
    np.testing.assert_allclose(batch, [weights * X * X, 4 * weights * X * X])


def test_cores_inside_of_shard_map_work_on_blocks() -> None:
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",))
        function = minijax.shard_map(
            on_cores(copy, 2), mesh=mesh, in_specs=P("x"), out_specs=P("x")
        )

        assert function(X).tolist() == X.tolist()


def test_copies_need_a_reference_that_varies_as_the_data_do() -> None:
    def per_device(x: Any) -> Any:
        y = minijax.new_ref(np.zeros(2, np.float32))
        pltpu.sync_copy(minijax.new_ref(x), y)
        return y[...]

    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",))
        with pytest.raises(ValueError, match="dma_start: the value varies over 'x'"):
            minijax.shard_map(per_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.feature("ST-04")
def test_run_scoped_gives_undefined_memory_and_takes_it_back() -> None:
    kept = []

    def body(a: Any, b: Any, c: Any, *, sem: Any) -> Any:
        kept.append(a)
        return a[...], b[...], c[...], pl.semaphore_read(sem.at[1])

    found = pl.run_scoped(
        body,
        pltpu.VMEM((2,), jnp.float32),
        pltpu.SMEM((1,), jnp.int8),
        minijax.ShapeDtypeStruct((1,), bool),
        sem=DMA((2,)),
    )

    np.testing.assert_array_equal(found[0], [np.nan, np.nan])
    assert [x.tolist() for x in found[1:]] == [[-128], [True], 0]
    with pytest.raises(ValueError, match="frozen"):
        kept[0][...]


def test_parts_of_parts_of_references_are_parts() -> None:
    ref = minijax.new_ref(np.arange(60).reshape(5, 4, 3))
    array = np.array(ref[...])

    def all_parts(ref: Any, i: Any) -> Any:
        part = ref.at[pl.ds(i, 4)].at[1::2, 2]
        ref.at[4].at[i, 1:][0] = -1
        return part[...], part.at[1][-1], ref.at[...].at[np.array([0, 2])][...], ref[4]

    for transform in (lambda f: f, minijax.jit):
        parts = transform(all_parts)(ref, 1)
        array[4, 1, 1] = -1
        expected = array[1:][1::2, 2], array[4, 2, -1], array[[0, 2]], array[4]
        assert [p.tolist() for p in parts] == [e.tolist() for e in expected]
    assert ref.at[0].at[1:].shape == (3, 3)


def test_semaphores_of_all_cores_order_them() -> None:
    def function(x: Any) -> Any:
        y = minijax.new_ref(jnp.zeros_like(x))

        def run(sem: Any) -> Any:
            @pl.core_map(mesh_of(2))
            def _() -> None:
                @pl.when(lax.axis_index("core") == 0)
                def _() -> None:
                    y[0] = x[1]
                    pl.semaphore_signal(sem, 3)

                @pl.when(lax.axis_index("core") == 1)
                def _() -> None:
                    pl.semaphore_wait(sem, 2)
                    y[1] = y[0]

            return pl.semaphore_read(sem)

        return pl.run_scoped(run, REGULAR), y[...]

    count, y = minijax.jit(function)(X)
    assert (y[:2].tolist(), int(count)) == ([2, 2], 1)


@pytest.mark.feature("ST-08")
def test_mesh_of_cores_is_one_core_unless_told_otherwise() -> None:
    mesh = pltpu.create_tensorcore_mesh("core")
    devices = minijax.devices()

    assert dict(mesh.shape) == {"core": 1}
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(num_cores_or_threads=4)):
        assert dict(pltpu.create_tensorcore_mesh("core", devices=devices).shape) == {"core": 4}
    assert mesh == mesh_of(1) != mesh_of(2)
    assert hash(mesh) == hash(mesh_of(1))
    assert [core.id for core in mesh_of(2).devices] == [0, 1]
    with pytest.raises(ValueError, match="devices and num_cores cannot both be given"):
        pltpu.create_tensorcore_mesh("core", devices=devices, num_cores=2)
    with pytest.raises(ValueError, match="at least one core"):
        pltpu.create_tensorcore_mesh("core", num_cores=0)


def product(a: Any, b: Any, cores: int, interpret: Any = False) -> Any:
    """The product of matrices, by blocks that are summed up where they lie."""

    def kernel(refs: Any) -> None:
        def step(indices: Any, a: Any, b: Any, out: Any) -> None:
            @pl.when(indices[2] == 0)
            def _() -> None:
                out[...] = jnp.zeros(out.shape, out.dtype)

            out[...] += a[...] @ b[...]

        @pl.core_map(mesh_of(cores), interpret=interpret)
        def _() -> None:
            pltpu.emit_pipeline(
                step,
                grid=(2, 2, 3),
                in_specs=[
                    pl.BlockSpec((2, 2), lambda i, j, k: (i, k)),
                    pl.BlockSpec((2, 4), lambda i, j, k: (k, j)),
                ],
                out_specs=[pl.BlockSpec((2, 4), lambda i, j, k: (i, j))],
                core_axis_name="core",
                dimension_semantics=(pltpu.ARBITRARY, pltpu.PARALLEL, pltpu.ARBITRARY),
                _explicit_indices=True,
            )(*refs)

    return pl.run_state(kernel)((a, b, jnp.zeros((len(a), b.shape[1]))))[2]


@pytest.mark.slow
@pytest.mark.feature("ST-09")
@pytest.mark.parametrize(("cores", "interpret"), [(1, False), (2, FOLLOWED)], ids=["1", "2"])
def test_pipeline_of_blocks_equals_the_whole_product(cores: int, interpret: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((4, 6), (6, 8)))

    found = minijax.jit(lambda a, b: product(a, b, cores, interpret))(a, b)

    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.feature("ST-09")
def test_prefetched_scalars_choose_blocks() -> None:
    order = np.array([2, 0, 2, 3, 3])
    x = np.arange(24, dtype=np.int32).reshape(4, 6)

    @pl.kernel(out_type=minijax.ShapeDtypeStruct((5, 6), np.int32), mesh=mesh_of(1))
    def gather(order: Any, x: Any, out: Any) -> None:
        def step(row: Any, whole: Any, out: Any, scratch: Any) -> None:
            scratch[...] = row[...]
            out[...] = scratch[...] + whole[0, 0]

        def run(order: Any, scratch: Any) -> None:
            pltpu.emit_pipeline(
                step,
                grid=(5, 2),
                in_specs=[
                    pl.BlockSpec((None, 3), lambda i, j: (order[i], j)),
                    pl.BlockSpec(memory_space=pl.ANY),
                ],
                out_specs=[pl.BlockSpec((None, 3), lambda i, j: (i, j))],
            )(x, x, out, scratches=[scratch])

        @pl.with_scoped(pltpu.VMEM((3,), np.int32))
        def with_scratch(scratch: Any) -> None:
            pltpu.prefetch_scalars(lambda order: run(order, scratch), order)

        with_scratch()

    assert minijax.jit(gather)(order, x).tolist() == x[order].tolist()


def unstarted(x: Any, y: Any) -> None:
    pl.run_scoped(lambda sem: pltpu.make_async_copy(x, y, sem).wait(), DMA)


def awaited_twice(x: Any, y: Any) -> None:
    def run(sem: Any) -> None:
        started = pltpu.async_copy(x, y, sem)
        started.wait()
        started.wait()

    pl.run_scoped(run, DMA)


def read_too_early(x: Any, y: Any) -> None:
    def run(sem: Any) -> None:
        started = pltpu.async_copy(x, y.at[:], sem)
        x[0] + y[2]
        started.wait()

    pl.run_scoped(run, DMA)


def overwritten_too_early(x: Any, y: Any) -> None:
    def run(sem: Any) -> None:
        started = pltpu.async_copy(x, y, sem)
        x[...] = y.at[0:0].shape[0] * jnp.ones(8)
        started.wait()

    pl.run_scoped(run, DMA)


def read_too_early_in_a_loop(x: Any, y: Any) -> None:
    def run(sems: Any) -> None:
        def step(i: Any, _: Any) -> None:
            started = pltpu.async_copy(x.at[i], y.at[i], sems.at[i])
            y[i]
            started.wait()

        lax.fori_loop(0, 4, step, None)

    pl.run_scoped(run, DMA((4,)))


def never_awaited(x: Any, y: Any) -> None:
    pl.run_scoped(lambda sem: pltpu.async_copy(x, y, sem) and None, DMA)


def waiting_for_no_signal(x: Any, y: Any) -> None:
    def run(sem: Any) -> None:
        pl.semaphore_signal(sem)
        pl.semaphore_wait(sem, 2)
        y[0] = x[0]

    pl.run_scoped(run, REGULAR)


def summed_over_cores(x: Any, y: Any) -> None:
    y[...] = lax.psum(x[...], "core")


ENDLESS = "the wait would never end: the semaphore counts less than it waits for"


@pytest.mark.feature("ST-05")
@pytest.mark.parametrize("transform", [lambda f: f, minijax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (unstarted, ENDLESS),
        (awaited_twice, ENDLESS),
        (read_too_early, "a place is read while a copy writes it"),
        (overwritten_too_early, "a place is written while a copy reads it"),
        (read_too_early_in_a_loop, "a place is read while a copy writes it"),
        (never_awaited, "scratch memory ends its life while a copy needs it"),
        (waiting_for_no_signal, ENDLESS),
        (summed_over_cores, "psum cannot go over the axis 'core' of cores"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_programs_that_misuse_copies_are_refused(body: Any, problem: str, transform: Any) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        transform(on_cores(body, 2))(X)

    assert re.search(rf"at +test_cores.py:\d+ in {body.__name__}\b", str(refused.value))


def all_write_the_first(x: Any, y: Any) -> None:
    y[0] = x[0]


def neighbours_meet(x: Any, y: Any) -> None:
    core = lax.axis_index("core")

    def step(i: Any, _: Any) -> None:
        y[3 * core + i] = x[i]

    lax.fori_loop(0, 4, step, None)


def a_copy_meets(x: Any, y: Any) -> None:
    part = pl.ds(lax.axis_index("core") * 3, 4)
    pl.run_scoped(lambda sem: pltpu.async_copy(x.at[:4], y.at[part], sem).wait(), DMA)


def late_read_meets(x: Any, y: Any) -> None:
    def run(sem: Any) -> None:
        def step(i: Any, _: Any) -> None:
            started = pltpu.async_copy(x.at[i], y.at[i], sem)
            y[2 * i - 1]
            started.wait()

        lax.fori_loop(0, 3, step, None)

    pl.run_scoped(run, DMA)


@pytest.mark.feature("ST-06")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (all_write_the_first, "the cores 0 and 1 write to one place"),
        (neighbours_meet, "the cores 0 and 1 write to one place"),
        (a_copy_meets, "the cores 0 and 1 write to one place"),
        (late_read_meets, "a place is read while a copy writes it"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_followed_cores_are_refused_where_they_meet(body: Any, problem: str) -> None:
    minijax.make_jaxpr(on_cores(body, 2))(X)

    with pytest.raises(ValueError, match=problem):
        minijax.make_jaxpr(on_cores(body, 2, FOLLOWED))(X)
    with config.detect_core_races(True), pytest.raises(ValueError, match=problem):
        minijax.make_jaxpr(on_cores(body, 2))(X)


def test_followed_cores_may_write_where_data_tell() -> None:
    def body(x: Any, y: Any) -> None:
        core = lax.axis_index("core")
        y[core] = x[core]

        @pl.when(x[0] > core)
        def _() -> None:
            y[5] = x[0]

        y[6 + x[core].astype(int)] = 0.0

    minijax.make_jaxpr(on_cores(body, 2, FOLLOWED))(X)


@pytest.mark.feature("ST-07")
def test_core_map_refuses_results_and_other_meshes() -> None:
    with pytest.raises(ValueError, match="a function run by core_map must return None"):
        on_cores(lambda x, y: 1)(X)
    with pytest.raises(TypeError, match="mesh must be a mesh of cores"):
        pl.core_map(minijax.make_mesh((1,), ("core",)))
    with pytest.raises(TypeError, match="core_map"):
        pl.core_map(mesh_of(1))(3)
    with pytest.raises(NotImplementedError, match="cannot run programs on cores"):
        on_cores(lambda x, y: copy_on_more(x, y))(X)


def copy_on_more(x: Any, y: Any) -> None:
    pl.core_map(mesh_of(2))(lambda: copy(x, y))


@pytest.mark.feature("ST-07")
def test_cores_that_touch_nothing_are_refused_at_lowering() -> None:
    function = minijax.jit(on_cores(lambda x, y: None, 2))

    traced = function.trace(X)
    with pytest.raises(ValueError, match="does nothing"):
        traced.lower()


def test_cores_may_print(capfd: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, y: Any) -> None:
        minijax.debug.print("core {}", lax.axis_index("core"), ordered=True)

    minijax.jit(on_cores(body, 2))(X)
    minijax.effects_barrier()

    assert capfd.readouterr().out.split("\n")[:2] == ["core 0", "core 1"]


@pytest.mark.feature("SM-12")
@pytest.mark.parametrize(
    ("specs", "problem"),
    [
        ({"in_specs": (P(),), "out_specs": None}, r"over cores, in_specs must be \(\)"),
        ({"in_specs": (), "out_specs": P()}, "over cores, out_specs must be None"),
    ],
    ids=["in", "out"],
)
def test_shard_map_over_cores_refuses_specs(specs: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        minijax.shard_map(lambda: None, mesh=mesh_of(1), **specs)


def misuse_of_semaphores() -> list[tuple[type[Exception], str, Callable[[], Any]]]:
    """Calls that are refused whatever runs them."""
    ref = minijax.new_ref(X)
    blocks = pl.BlockSpec((3,), lambda i: (i,))

    def scoped(f: Callable[..., Any], *types: Any) -> Callable[[], Any]:
        return lambda: pl.run_scoped(f, *types)

    def piped(spec: Any, **more: Any) -> Callable[[], Any]:
        pipeline = pltpu.emit_pipeline(lambda x: None, grid=(2,), in_specs=[spec], **more)
        return lambda: pipeline(ref)

    return [
        (ValueError, "a semaphore is no array", scoped(lambda s: s[...], DMA)),
        (TypeError, "sem must be a semaphore of copies", scoped(lambda s: start(ref, s), REGULAR)),
        (TypeError, "sem must be a semaphore", lambda: pl.semaphore_read(ref)),
        (ValueError, "array of semaphores", scoped(pl.semaphore_signal, REGULAR((2,)))),
        (TypeError, "inc must be an integer", scoped(lambda s: signal(s, 1.5), REGULAR)),
        (NotImplementedError, "device_id must be None", scoped(lambda s: tell(s, 1), REGULAR)),
        (ValueError, "does not change the shape", scoped(lambda s: start(ref.at[1:], s, ref), DMA)),
        (ValueError, "must be a reference", scoped(lambda s: start(X, s, ref), DMA)),
        (ValueError, ENDLESS, scoped(lambda s: described(ref, s).wait(), DMA)),
        (TypeError, r"types\[0\] is no type of scratch memory", scoped(lambda x: None, 3)),
        (ValueError, "blocks do not divide reference 0", piped(blocks)),
        (ValueError, "another rank", piped(pl.BlockSpec((1, 1), lambda i: (i, i)))),
        (ValueError, "an index for each dimension", piped(pl.BlockSpec((4,), lambda i: (i, i)))),
        (NotImplementedError, "core_axis must be None", lambda: piped(blocks, core_axis=0)),
        (TypeError, "something else than BlockSpecs", lambda: piped(3)),
    ]


def start(src: Any, sem: Any, dst: Any = None) -> None:
    pltpu.async_copy(src, src if dst is None else dst, sem)


def described(ref: Any, sem: Any) -> Any:
    return pltpu.make_async_copy(ref, ref, sem)


def signal(sem: Any, inc: Any) -> None:
    pl.semaphore_signal(sem, inc)


def tell(sem: Any, device: int) -> None:
    pl.semaphore_signal(sem, device_id=device)


def test_wrong_arguments_are_refused_by_name() -> None:
    for error, problem, call in misuse_of_semaphores():
        with pytest.raises(error, match=problem):
            call()


def test_grid_that_cores_cannot_share_is_refused() -> None:
    def body(x: Any, y: Any) -> None:
        pltpu.emit_pipeline(lambda x: None, grid=(4,), core_axis_name="core")()

    with pytest.raises(NotImplementedError, match="can be shared equally by 2 cores"):
        on_cores(body, 2)(X)
