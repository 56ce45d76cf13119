"""Awkward calls, and what they raise: of minijax, or of JAX, whose classes a file records.

`python tests/awkward/calls.py record`, where JAX is installed, writes `jax_classes.json` anew.
"""

import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "jax_classes.json"
NOTHING = "nothing"


def listed() -> Iterator[tuple[str, list[str]]]:
    """The sections of the list, each with its calls."""
    for section in FOLDER.joinpath("calls.txt").read_text(encoding="utf-8").split("# ")[1:]:
        title, *calls = section.strip().split("\n")
        yield title, calls


def names(library: str) -> dict[str, Any]:
    """What the calls name; eight devices are needed."""
    jax = importlib.import_module(library)
    for room in ("flatten_util", "image", "ops", "scipy.special", "lax.linalg", "ffi", "nn"):
        importlib.import_module(f"{library}.{room}")
    leaked = []

    def custom_jvp_rule(rule: Any) -> Any:
        function = jax.custom_jvp(lambda x: x)
        function.defjvp(rule)
        return function

    def custom_vjp_rules(forward: Any, backward: Any) -> Any:
        function = jax.custom_vjp(lambda x: x)
        function.defvjp(forward, backward)
        return function

    def if_(x: Any) -> int:
        return 1 if x else 2

    def assert_(x: Any) -> None:
        assert x

    def leak(x: Any) -> Any:
        leaked.append(x)
        return x

    return {
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "nn": jax.nn,
        "np": np,
        "random": jax.random,
        "mesh": jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2),
        "custom_jvp_rule": custom_jvp_rule,
        "custom_vjp_rules": custom_vjp_rules,
        "if_": if_,
        "assert_": assert_,
        "leak": leak,
        "thing": Thing(),
        "use_leak": lambda: leaked[0] + 1,
    }


class Thing:
    """Neither an array nor a number."""

    def __repr__(self) -> str:
        return "Thing()"


def outcome(call: str, scope: dict[str, Any]) -> Exception | None:
    """What a call raises, if anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(call, "call.py", "exec"), dict(scope))
        except Exception as error:
            return error
    return None


def _record() -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    scope = names("jax")
    found = {
        call: type(outcome(call, scope)).__name__.replace("NoneType", NOTHING)
        for _, calls in listed()
        for call in calls
    }
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    _record()
