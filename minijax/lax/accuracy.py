"""How exact elementwise functions have to be: the argument `accuracy` of `exp` and others."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from minijax.core.errors import error


class AccuracyMode(enum.Enum):
    """A named accuracy.

    Source:     mirrors jax.lax.AccuracyMode (0.10).

    Example:
        >>> lax.exp(jnp.array([0.0]), accuracy=lax.AccuracyMode.HIGHEST)
        Array([1.], dtype=float32)
    """

    HIGHEST = 1
    DEFAULT = 2

    def attribute_text(self) -> str:
        """The accuracy in MLIR's syntax."""
        mode = f"#stablehlo.result_accuracy_mode<{self.name}>"
        return f"#stablehlo.result_accuracy<mode = {mode}>"


@dataclass(frozen=True)
class Tolerance:
    """The error that a result may have.

    Source:     mirrors jax.lax.Tolerance (0.10).

    Attributes:
        atol: absolute error.
        rtol: relative error.
        ulps: error in units of the last place.

    Raises:
        ValueError: a tolerance is negative, or none is set.

    Example:
        >>> lax.Tolerance(rtol=1e-3)
        Tolerance(atol=0.0, rtol=0.001, ulps=0)
        >>> jax.make_jaxpr(lambda x: lax.tanh(x, accuracy=lax.Tolerance(ulps=2)))(1.0)
        { lambda ; a:f32[]. let
            b:f32[] = tanh[accuracy=Tolerance(atol=0.0, rtol=0.0, ulps=2)] a
          in (b,) }
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0 or not (self.atol or self.rtol or self.ulps):
            error(
                ValueError,
                "lax.Tolerance",
                "tolerances must be non-negative, and one of them positive.",
                got={"atol": self.atol, "rtol": self.rtol, "ulps": self.ulps},
            )

    def attribute_text(self) -> str:
        """The accuracy in MLIR's syntax."""
        return (
            f"#stablehlo.result_accuracy<atol = {self.atol:e}, rtol = {self.rtol:e}, "
            f"ulps = {self.ulps}, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        )


Accuracy = AccuracyMode | Tolerance | None
