"""Slips: what users do wrong raises an error of JAX's class, with a text that a person has read.

The texts are in `tests/golden/slips.txt`.  Of each was asked: is the function the one that the
program calls, are the facts those that its author has, and is the fix right for this slip?
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import errors
from tests.awkward import calls, slips

JAX_CLASSES = json.loads(slips.RECORDED.read_text(encoding="utf-8"))
_REASONS = tomllib.loads(calls.FOLDER.joinpath("slip_deviations.toml").read_text(encoding="utf-8"))
DEVIATIONS = {name: reason for reason, known in _REASONS.items() for name in known}


@pytest.fixture(scope="module")
def outcomes() -> dict[slips.Slip, slips.Outcome]:
    with jax.cpu_devices(8):
        scope = slips.names("minijax")
        return {slip: slips.outcome(slip, scope) for slip in slips.listed()}


@pytest.mark.feature("NP-01")
def test_slips_raise_errors_of_jax_s_classes(
    outcomes: dict[slips.Slip, slips.Outcome],
) -> None:
    assert len(outcomes) >= 150
    assert [slip.name for slip in outcomes] == list(JAX_CLASSES)
    deviating = {slip.name for slip, found in outcomes.items() if not _is_expected(slip, found)}
    assert deviating == DEVIATIONS.keys()


def _is_expected(slip: slips.Slip, found: slips.Outcome) -> bool:
    expected = JAX_CLASSES[slip.name]
    if found.error is None:
        return found.kind == expected
    return expected in [kind.__name__ for kind in type(found.error).__mro__]


@pytest.mark.feature("NP-01")
def test_texts_are_those_that_were_read(
    outcomes: dict[slips.Slip, slips.Outcome], golden: Callable[[str, str], None]
) -> None:
    golden("slips.txt", "\n".join(_written(outcomes)))


def _written(outcomes: dict[slips.Slip, slips.Outcome]) -> Iterator[str]:
    theme = ""
    for slip, found in outcomes.items():
        if slip.theme != theme:
            theme = slip.theme
            yield f"\n# {theme}"
        yield f"\n--- {slip.name}"
        yield from (f">>> {line}".rstrip() for line in slip.source.splitlines())
        yield _shown(slip, found)


def _shown(slip: slips.Slip, found: slips.Outcome) -> str:
    lines = [
        f"{given.category.__name__} of {given.filename}:{given.lineno}: {given.message}"
        for given in found.warnings
    ]
    if slip.name in DEVIATIONS:
        lines.insert(0, f"in JAX: {JAX_CLASSES[slip.name]}; {DEVIATIONS[slip.name]}")
    if found.error is not None:
        given = getattr(found.error, "__notes__", ())
        notes = [note for note in given if "TRACEBACK_FILTERING" not in note]
        lines += [f"{found.kind}: {found.error}", *notes]
    return re.sub("0[xX][0-9a-fA-F]+", "0x0", "\n".join(lines or [calls.NOTHING]))


@pytest.mark.feature("UX-01")
def test_tracebacks_end_at_the_user_s_line(
    outcomes: dict[slips.Slip, slips.Outcome],
) -> None:
    depths = [found.depth for found in outcomes.values() if found.error is not None]
    assert len(depths) > 250
    assert max(depths) == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1.0,
        lambda x: -x,
        lambda x: x[0],
        lambda x: x.at[0].set(1.0),
        lambda x: jnp.sum(x),
        lambda x: lax.sin(x),
        lambda x: np.asarray(x),
        lambda x: jax.jit(lambda y: y * 2.0)(x),
        lambda x: jax.grad(jnp.sum)(x),
        lambda x: jax.vmap(jnp.sin)(x),
        lambda x: jax.device_put(x, jax.devices()[0]),
        lambda x: lax.add(x, x),
        lambda x: lax.reshape(x, (2, 1)),
        lambda x: x.reshape(2, 1),
        lambda x: jnp.stack([x, x]),
        lambda x: np.from_dlpack(x),
        lambda x: x.addressable_shards,
        lambda x: x.tolist(),
    ],
)
def test_use_after_donation_is_one_error(
    use: Callable[[Any], Any], capfd: pytest.CaptureFixture[str]
) -> None:
    def donated() -> Any:
        x = jnp.ones(2)
        jax.jit(lambda y: y + 1.0, donate_argnums=0)(x)
        return x

    with pytest.raises(errors.DeletedArrayError, match="Array: the array has been deleted"):
        use(donated())
    assert capfd.readouterr().err == ""
    # Where C++ has answered the call before, XLA finds out, and writes a line of its own.
    use(jnp.ones(2))
    for used in (donated(), jnp.ones(2)):
        used.delete()
        with pytest.raises(errors.DeletedArrayError, match="Array: the array has been deleted"):
            use(used)
    with pytest.raises(errors.DeletedArrayError, match="Array: the array has been deleted"):
        use(donated())
