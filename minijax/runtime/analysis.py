"""What XLA tells about a module before compiling it: its HLO and its estimated costs."""

from __future__ import annotations

import io
from typing import Any

from jaxlib import _jax


def computation(module: Any) -> Any:
    """An MLIR module as an XLA computation."""
    with io.BytesIO() as stream:
        module.operation.write_bytecode(stream)
        bytecode = stream.getvalue()
    return _jax.mlir.mlir_module_to_xla_computation(bytecode)


def hlo_text(module: Any) -> str:
    """An MLIR module as HLO text, not optimized."""
    return str(computation(module).as_hlo_text())


def module_costs(module: Any, client: Any) -> dict[str, float]:
    """XLA's estimate of operations and bytes of a module."""
    hlo = computation(module).get_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(client, hlo))
