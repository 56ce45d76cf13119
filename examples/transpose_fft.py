"""A Fourier transform of a signal that is spread over devices: local transforms and transpositions.

The signal is written as a matrix of which each device has some rows. All-to-all hands out columns
instead; each device transforms its columns, twists them, hands rows back and transforms these. A
last all-to-all puts frequencies in order. Devices talk three times, whatever the length (D. H.
Bailey, "FFTs in external or hierarchical memory", 1990). Rows are transformed as J. W. Cooley and
J. W. Tukey do (1965): from short transforms of places that lie far apart, twice as long ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
ROWS, COLUMNS = 64, 128
TONES = {50: 1.0, 440: 0.6, 3000: 0.3}
"""Frequencies that are hidden in noise, and how loud they are."""


class Result(NamedTuple):
    """The spectrum, by the devices and by NumPy; and the loudest frequencies."""

    spectrum: np.ndarray
    expected: np.ndarray
    loudest: list[int]


def main() -> Result:
    """Finds tones in noise."""
    transform, (x,) = workload()
    spectrum = np.asarray(transform(x))
    expected = np.fft.fft(np.asarray(x))
    np.testing.assert_allclose(spectrum, expected, atol=2e-2)

    sent = jax.testing.assert_collectives(transform, exactly=True, all_to_all=3)(x)
    heading(
        "A Fourier transform over devices",
        f"""A signal of {x.size:,} points on {DEVICES} devices, as a matrix of {ROWS} x
        {COLUMNS}.""",
    )
    show(Panel("collectives", placements.sent(sent)))
    half = np.abs(spectrum[: x.size // 2]) * 2 / x.size
    loudest = np.argsort(-half)[: len(TONES)].tolist()
    lines = [f"{f:6} {half[f]:.2f} {'█' * round(40 * half[f])}" for f in sorted(loudest)]
    show(Panel("the loudest frequencies", "\n".join(lines)))
    paragraph("NumPy's transform says the same.")
    return Result(spectrum, expected, loudest)


def workload() -> tuple[Callable[..., jax.Array], tuple[jax.Array]]:
    """The transform on all devices, and a signal."""
    mesh = jax.make_mesh((DEVICES,), ("parts",))
    time = np.arange(ROWS * COLUMNS) / (ROWS * COLUMNS)
    signal = sum(loud * np.sin(2 * np.pi * f * time) for f, loud in TONES.items())
    noise = np.random.default_rng(0).normal(size=signal.shape)
    x = (signal + noise).astype(np.complex64)
    split = jax.shard_map(transformed, mesh=mesh, in_specs=P("parts"), out_specs=P("parts"))
    return jax.jit(split), (jax.device_put(x, NamedSharding(mesh, P("parts"))),)


def transformed(x: jax.Array) -> jax.Array:
    """A device's part of the spectrum, from its part of the signal.

    With n = COLUMNS a + b and k = c + ROWS d, the sum over n of x[n] w^(nk) is one over b of
    w^(bc) w^(ROWS bd) times one over a of x[a, b] w^(COLUMNS ac).
    """
    columns = turned(x.reshape(-1, COLUMNS))
    number = lax.axis_index("parts") * len(columns) + jnp.arange(len(columns))
    twist = number[:, None] * jnp.arange(ROWS) * np.float32(-2 * np.pi / (ROWS * COLUMNS))
    rows = turned(fft(columns) * lax.complex(jnp.cos(twist), jnp.sin(twist)))
    return turned(fft(rows)).reshape(-1)


def turned(rows: jax.Array) -> jax.Array:
    """The device's rows of the transposed matrix."""
    pieces = lax.all_to_all(rows, "parts", split_axis=1, concat_axis=0, tiled=True)
    return pieces.T


def fft(x: jax.Array) -> jax.Array:
    """The Fourier transform of each row, whose length is a power of two."""
    # [row, k, place]: transforms of length K, each of the places that are n / K apart.
    parts = x[:, None, :]
    while parts.shape[2] > 1:
        even, odd = jnp.split(parts, 2, axis=2)
        turns = np.exp(-1j * np.pi * np.arange(parts.shape[1]) / parts.shape[1])
        odd *= turns.astype(np.complex64)[:, None]
        parts = jnp.concatenate([even + odd, even - odd], axis=1)
    return parts[:, :, 0]


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
