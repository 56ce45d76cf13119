"""Writes `recorded.json` from JAX: `python tests/scipy/special/record.py`, with JAX 0.10.2."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

# They take Python integers, or have other tests.
APART = ("bernoulli", "bessel_jn", "sph_harm_y", "multigammaln", "logsumexp")

VALUES: dict[str, Any] = {
    "float32": np.float32(0.5),
    "float16": np.float16(0.5),
    "int32": np.int32(1),
    "uint8": np.uint8(1),
    "bool": np.bool_(True),
    "complex64": np.complex64(0.5 + 0.2j),
    "float64": np.float64(0.5),
    "float": 0.5,
    "int": 1,
    "None": None,
}

# What JAX stumbles over: None, the negation of booleans, `owens_t` of complex numbers.
DIFFERENCES = {
    "log_softmax": {"bool": "float32"},
    "polygamma": {"None": "TypeError"},
    "softmax": {"bool": "float32"},
    "owens_t": {"complex64": "TypeError"},
    "expn": {"None": "ValueError"},
    "hyp1f1": {"None": "ValueError"},
    "hyp2f1": {"None": "ValueError"},
}


def required(function: Any) -> list[str]:
    """The parameters that have no default, and `q` of zeta."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty or p.name == "q"]


def signature(function: Any) -> list[list[str]]:
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, p.kind.name, repr(p.default)] for p in parameters]


def types_of(jax: Any, name: str) -> dict[str, str]:
    """The types of results, by that of all arguments, or the class of the error."""
    function = getattr(jax.scipy.special, name)
    found = {}
    for kind, value in VALUES.items():
        args = [value] * len(required(function))
        if name == "polygamma" and kind != "None":
            args[0] = np.int32(2)
        try:
            out = jax.eval_shape(lambda args=args: function(*args))
        except Exception as error:
            found[kind] = type(error).__name__
            continue
        outs = out if isinstance(out, tuple) else (out,)
        weak = ["~" if x.weak_type else "" for x in outs]
        found[kind] = " ".join(f"{w}{x.dtype}" for w, x in zip(weak, outs, strict=True))
    return found


def _main() -> None:
    jax = importlib.import_module("jax")
    special = importlib.import_module("jax.scipy.special")
    names = sorted(name for name in dir(special) if not name.startswith("_"))
    facts = {
        "signatures": {name: signature(getattr(special, name)) for name in names},
        "types": {name: types_of(jax, name) for name in names if name not in APART},
    }
    text = json.dumps(facts).replace("]], ", "]],\n").replace("}, ", "},\n")
    Path(__file__).with_name("recorded.json").write_text(text + "\n")


if __name__ == "__main__":
    _main()
