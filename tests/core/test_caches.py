"""What `clear_caches` forgets, and what threads share."""

import ast
import gc
import importlib
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import cache
from minijax.core.jaxpr import ClosedJaxpr
from minijax.lowering import stablehlo
from minijax.lowering.module import Lowering
from minijax.runtime import placement
from minijax.sharding import AbstractMesh, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.docs import public


@pytest.fixture
def cached() -> Iterator[Callable[..., Any]]:
    """Makes decorators that remember results, in caches that are withdrawn after the test."""
    before = dict(cache.CACHES)
    yield lambda name, **facts: cache.Cache(name, "results", key="arguments", **facts).function
    cache.CACHES.clear()
    cache.CACHES.update(before)


def test_remembered_results_are_forgotten_together(cached: Callable[..., Any]) -> None:
    calls = []
    found = cached("emptied", most=8, emptied=True)(calls.append)
    found(1)
    found(1)
    cache.clear()
    found(1)
    assert calls == [1, 1]


def test_remembered_results_are_bounded(cached: Callable[..., Any]) -> None:
    calls = []
    found = cached("bounded", most=2)(calls.append)
    for i in (0, 1, 2, 0):
        found(i)
    assert calls == [0, 1, 2, 0]


def use(mesh: Mesh) -> None:
    x = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    jax.lax.with_sharding_constraint(x + 1, NamedSharding(mesh, P())).block_until_ready()
    assert len(x.addressable_shards) == 4


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("MS-01")
def test_meshes_are_forgotten_with_the_caches() -> None:
    with jax.cpu_devices(4):
        mesh = Mesh(np.array(jax.devices())[[3, 1, 0, 2]], "x")
        use(mesh)
        found = weakref.ref(mesh)
        del mesh
        jax.clear_caches()
        gc.collect()
        assert found() is None


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("MS-15")
def test_natives_live_as_long_as_what_is_placed_so() -> None:
    with jax.cpu_devices(4):
        sharding = NamedSharding(Mesh(np.array(jax.devices())[[2, 1, 0, 3]], "x"), P("x"))
        x = jax.device_put(np.arange(8.0), sharding)
        assert placement.native(sharding, 1) is x.buffer._sharding
        found = weakref.ref(x.buffer._sharding)
        del x
        gc.collect()
        assert found() is None


def in_threads(make: Callable[[], Any]) -> set[int]:
    """The identities of what eight threads make at a time."""
    barrier = threading.Barrier(8)
    made: list[Any] = []

    def run() -> None:
        barrier.wait()
        made.append(make())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return set(map(id, made))


@pytest.mark.feature("MS-01", "MS-05")
def test_threads_that_make_one_mesh_get_one_object() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for i in range(40):
            name = f"axis{i}"
            assert len(in_threads(lambda name=name: AbstractMesh((2,), (name,)))) == 1
            assert len(in_threads(lambda name=name: Mesh(np.array(["a", "b"]), name))) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.turns(3)
@pytest.mark.feature("RB-10")
def test_a_type_is_one_object_while_threads_empty_the_caches() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    stop = threading.Event()

    def empty() -> None:
        while not stop.is_set():
            cache.clear()

    emptying = threading.Thread(target=empty)
    emptying.start()
    try:
        for i in range(300):
            kept = jax.ShapeDtypeStruct((i,), np.float32)
            assert len(in_threads(lambda kept=kept: kept.aval)) == 1
            held = kept.aval
            cache.clear()
            assert kept.aval is held
    finally:
        stop.set()
        emptying.join()
        sys.setswitchinterval(before)


@pytest.mark.feature("LG-05")
def test_cache_stats_count_meshes_and_what_is_made_of_them() -> None:
    def counted() -> dict[str, tuple[int, int]]:
        return {name: tuple(info) for name, info in jax.cache_stats().items()}

    with jax.cpu_devices(4):
        devices = np.array(jax.devices())
        jax.clear_caches()
        before = counted()
        x = np.arange(8.0)
        for _ in range(2):
            mesh = Mesh(devices, ("x",))
            jax.device_put(x, NamedSharding(mesh, P("x")))
        after = counted()
    for name in ("meshes", "device lists", "index tables", "named shardings", "tilings"):
        assert name in after
    assert after["meshes"][0] > before["meshes"][0]
    assert after["index tables"] != before["index tables"]


PACKAGE = Path(jax.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"


@pytest.mark.feature("HO-03")
def test_the_page_on_the_architecture_lists_every_cache() -> None:
    for module in public.every_module():
        importlib.import_module(module)

    table = cache.described()

    assert table in PAGE.read_text(encoding="utf-8"), f"the table of caches is now\n{table}"


@pytest.mark.feature("HO-03")
def test_cache_stats_list_every_cache_and_what_is_known_of_it() -> None:
    jax.clear_caches()
    jax.lax.add(jax.lax.neg(1.0), 2.0)

    found = jax.cache_stats()

    assert set(found) == set(cache.CACHES)
    assert found["operations"].size == 2
    assert not found["operations"].is_counted
    assert (found["operations"].hits, found["operations"].misses) == (None, None)
    assert found["eager"].misses == 2
    assert (found["lower"].misses, found["lower"].size) == (2, None)
    assert str(found["lower"]) == "CacheInfo(hits=0, misses=2)"
    assert str(found["operations"]) == "CacheInfo(not counted, size=2)"
    assert found["named shardings"].size is not None


def test_answers_of_a_function_die_with_it(cached: Callable[..., Any]) -> None:
    table = cache.Cache("of functions", "numbers", key="none", owner="function").by_owner()

    def function() -> None:
        """What owns an answer."""

    table[function] = {"answer": 1}
    assert cache.CACHES["of functions"].info.size == 1
    del function
    gc.collect()
    assert cache.CACHES["of functions"].info.size == 0


def test_what_an_owner_has_is_made_once(cached: Callable[..., Any]) -> None:
    closed = jax.make_jaxpr(lambda x: x)(1.0)
    numbers = cache.Cache("of jaxprs", "numbers", key="anything", owner="jaxpr")
    assert [numbers.of(closed, "a", lambda n=n: n) for n in (1, 2)] == [1, 1]
    assert numbers.find(closed, "b") is None
    assert numbers.keep(closed, "b", 3) == numbers.find(closed, "b") == 3
    assert tuple(numbers.info) == (1, 1)


UNDECLARED = re.compile(r"lru_cache|Weak(Key|Value)Dictionary\(|\.cache(\[|\.get|\.setdefault)")


def test_every_cache_is_declared() -> None:
    """Tables are made by a `Cache`; `functools.cache` is for what is computed once, of nothing."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text(encoding="utf-8")
        if name == "core/cache.py" or name.startswith("testing/"):
            continue
        found += [f"{name}: {line}" for line in text.splitlines() if UNDECLARED.search(line)]
        found += [f"{name}: {function}" for function in _remembering(text)]

    # Which arrays are pieces of which is no answer to a question.
    assert found == ["runtime/placement.py:         piece.holders = weakref.WeakValueDictionary()"]


def _remembering(text: str) -> Iterator[str]:
    """The functions of arguments whose results `functools` remembers."""
    for node in ast.walk(ast.parse(text)) if "functools.cache" in text else ():
        if isinstance(node, ast.FunctionDef) and node.args.args:
            decorators = map(ast.unparse, node.decorator_list)
            yield from (node.name for d in decorators if d == "functools.cache")


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What dies in a test dies at once, not because Python's collector happens to look."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.feature("RB-13")
@pytest.mark.usefixtures("without_collector")
def test_a_module_dies_with_its_lowering() -> None:
    # The module's names were those of the lowering, which was a cycle: modules waited for the
    # collector, hundreds of them.
    lowering = Lowering("f", "cpu")
    gone = weakref.ref(lowering)
    del lowering
    assert gone() is None


@pytest.mark.feature("RB-13")
@pytest.mark.usefixtures("young_heap", "without_collector")
def test_a_kept_exception_keeps_no_program() -> None:
    # A frame keeps those that have called it, and the package's own have programs.
    def fails(x: np.ndarray[Any, Any]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), "float32"), x))(1.0)
    jax.clear_caches()
    assert [x for x in gc.get_objects() if isinstance(x, ClosedJaxpr)] == []
    assert caught.value.args == ("no",)


@pytest.mark.feature("RB-13")
def test_the_context_stays_while_something_is_of_it() -> None:
    lowered = jax.jit(lambda x: x + 1).lower(jnp.ones(3))
    before = stablehlo.context()
    jax.clear_caches()
    assert stablehlo.context() is before
    assert jax.jit(lambda x: x * 2)(jnp.ones(3)).sum() == 6
    assert lowered.compile()(jnp.ones(3)).sum() == 6
