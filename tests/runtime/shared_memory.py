"""What becomes of arrays whose memory others delete or donate: run as a program, as it may die.

Each case returns an array to be read.  Programs are called often enough for C++ to answer.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

DEVICES = 8
VALUES = np.arange(16, dtype=np.float32)
CASES: dict[str, Callable[[], Any]] = {}

double = jax.jit(lambda x: x * 2)
take = jax.jit(lambda x: x + 1, donate_argnums=0)


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def mesh(count: int = DEVICES) -> Mesh:
    return Mesh(np.array(jax.devices()[:count]), ("x",))


def put(*spec: Any) -> Any:
    return jax.device_put(VALUES, NamedSharding(mesh(), P(*spec)))


def parts() -> list[Any]:
    return [jax.device_put(VALUES[2 * i : 2 * i + 2], d) for i, d in enumerate(jax.devices())]


def whole_of(pieces: list[Any]) -> Any:
    sharding = NamedSharding(mesh(), P("x"))
    return heated(jax.make_array_from_single_device_arrays((16,), sharding, pieces))


def heated(x: Any) -> Any:
    for _ in range(3):
        double(x)
    return x


@case
def whole_without_a_piece() -> Any:
    x = heated(put("x"))
    x.addressable_shards[3].data.delete()
    return double(x)


@case
def piece_of_a_deleted_whole() -> Any:
    x = heated(put("x"))
    piece = x.addressable_shards[3].data
    x.delete()
    return double(piece)


@case
def deleted_under_its_own_name() -> Any:
    x = put("x")
    y = heated(jax.device_put(x, x.sharding))
    x.delete()
    return double(y)


@case
def other_notation_of_a_deleted_array() -> Any:
    x = put()
    y = heated(jax.device_put(x, NamedSharding(mesh(), P(None))))
    x.delete()
    return double(y)


@case
def other_notation_of_a_donated_array() -> Any:
    x = put()
    y = heated(jax.device_put(x, NamedSharding(mesh(), P(None))))
    take(x)
    return double(y)


@case
def array_whose_other_notation_is_donated() -> Any:
    x = heated(put())
    take(jax.device_put(x, NamedSharding(mesh(), P(None))))
    return double(x)


@case
def array_whose_half_is_deleted_elsewhere() -> Any:
    x = heated(put())
    jax.device_put(x, NamedSharding(mesh(4), P())).delete()
    return double(x)


@case
def array_whose_copy_on_one_device_is_deleted() -> Any:
    x = heated(put())
    jax.device_put(x, jax.devices()[0]).delete()
    return double(x)


@case
def whole_whose_piece_is_donated() -> Any:
    for _ in range(3):
        take(jax.device_put(VALUES[:2], jax.devices()[3]))
    x = heated(put("x"))
    take(x.addressable_shards[3].data)
    return double(x)


@case
def whole_whose_part_is_deleted() -> Any:
    pieces = parts()
    x = whole_of(pieces)
    pieces[2].delete()
    return double(x)


@case
def whole_whose_part_is_donated() -> Any:
    for _ in range(3):
        take(jax.device_put(VALUES[:2], jax.devices()[2]))
    pieces = parts()
    x = whole_of(pieces)
    take(pieces[2])
    return double(x)


@case
def part_of_a_donated_whole() -> Any:
    pieces = parts()
    take(whole_of(pieces))
    return double(pieces[2])


@case
def one_of_two_wholes() -> Any:
    pieces = parts()
    x, y = whole_of(pieces), whole_of(pieces)
    x.delete()
    take(whole_of(pieces))
    return double(y)


@case
def whole_whose_part_has_another_name() -> Any:
    uncommitted = jax.numpy.asarray(VALUES[:2])
    x = whole_of([jax.device_put(uncommitted, jax.devices()[0]), *parts()[1:]])
    uncommitted.delete()
    return double(x)


@case
def integers_of_deleted_keys() -> Any:
    keys = jax.random.split(jax.random.key(0), 8)
    keys = jax.device_put(keys, NamedSharding(mesh(), P("x")))
    data = heated(jax.random.key_data(keys))
    keys.delete()
    return double(data)


def outcome(function: Callable[[], Any]) -> Any:
    """The elements that a case returns, or the class of its error."""
    try:
        return np.asarray(function()).tolist()
    except Exception as error:
        return type(error).__name__


if __name__ == "__main__":
    with jax.cpu_devices(DEVICES):
        for name, function in CASES.items():
            sys.stdout.write(json.dumps([name, outcome(function)]) + "\n")
            sys.stdout.flush()
