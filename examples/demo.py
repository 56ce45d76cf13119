"""The demo: one function through every stage of the compiler, then a network trained with it.

Run with `make demo`, or `python examples/demo.py`. Exits with an error if the network learns less
than it should.
"""

from __future__ import annotations

import inspect
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from matplotlib.figure import Figure

import digits
import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init
from terminal import Panel, Progress, excerpt, heading, paragraph, say, show, shown

T = TypeVar("T")

OUTPUT = Path(__file__).parent / "output"
GOAL = 0.97
BATCH = 64
EPOCHS = 30


class Result(NamedTuple):
    """What training reached, and the picture of it."""

    accuracy: float
    losses: list[float]
    picture: Path


class Curve(NamedTuple):
    """The loss after every step, and the held-out accuracy after every epoch."""

    losses: list[float]
    accuracies: list[float]


def wave(w, x):
    """A wave that grows with x."""
    return x * jnp.sin(w * x)


def main(output: Path = OUTPUT) -> Result:
    """Shows the stages, trains the network, draws the picture."""
    device = jax.devices()[0]
    say(f"\nminijax on {device.platform}: from a Python function to a network that reads")
    show_stages()
    train, held_out = digits.load()
    network, curve = learn(train, held_out)
    predicted = np.asarray(digits.predict(network, held_out.images))
    accuracy = float(np.mean(predicted == held_out.labels))
    picture = draw(curve, held_out, predicted, output / "demo.png")
    report(predicted, held_out, picture)
    return Result(accuracy, curve.losses, picture)


def show_stages() -> None:
    """Prints one small function as each stage of the compiler sees it."""
    w, x, xs = jnp.float32(2), jnp.float32(3), jnp.arange(4, dtype=jnp.float32)
    slope = jax.grad(wave)
    slopes = jax.vmap(slope, in_axes=(None, 0))

    heading(
        "1  Tracing and transforming",
        """Tracing runs a function once, on stand-ins that record every operation; the record is a
        jaxpr. grad and vmap make new programs of old ones: the slope of wave in w, then that slope
        for four x at once.""",
    )
    show(
        Panel("Python", inspect.getsource(wave)),
        Panel("wave", str(jax.make_jaxpr(wave)(w, x))),
        Panel("grad(wave)", str(jax.make_jaxpr(slope)(w, x))),
        Panel("vmap(grad(wave), in_axes=(None, 0))", str(jax.make_jaxpr(slopes)(w, xs))),
    )

    lowered = jax.jit(slopes).lower(w, xs)
    heading(
        "2  Lowering to StableHLO",
        """The last jaxpr as the portable program that XLA is given: every type and every broadcast
        is spelled out.""",
    )
    show(Panel("jit(slopes).lower(w, xs).as_text()", excerpt(lowered.as_text(), 24)))

    heading(
        "3  Compiling with XLA",
        """XLA has merged all operations into one loop, which reads x once and writes the answer
        once; machine code is made of it. (Notes on source lines are left out here.)""",
    )
    show(
        Panel(
            "jit(slopes).lower(w, xs).compile().as_text()",
            excerpt(_readable_hlo(lowered.compile().as_text()), 24),
        )
    )


def learn(train: digits.Examples, held_out: digits.Examples) -> tuple[digits.Network, Curve]:
    """Compiles the training step stage by stage, then runs it over the data."""
    key = jax.random.key(0)
    network = digits.init_network(key)
    state = adam_init(network)
    total = EPOCHS * (len(train.labels) // BATCH)

    heading(
        "4  A real program",
        f"""A convolutional network learns to read handwritten digits from {len(train.labels):,}
        images and is judged on {len(held_out.labels)} others. Data augmentation, forward pass,
        gradient and optimizer are one compiled program.""",
    )
    step = compile_in_stages(network, state, next(digits.batches(train, BATCH, 1)), rate(0), key)
    curve = Curve([], [])
    progress = Progress(total, "training")
    for number, batch in enumerate(digits.batches(train, BATCH, EPOCHS), start=1):
        step_key = jax.random.fold_in(key, number)
        value, network, state = step(network, state, batch, rate(number / total), step_key)
        curve.losses.append(float(value))
        if number % (total // EPOCHS) == 0:
            right = np.asarray(digits.predict(network, held_out.images)) == held_out.labels
            curve.accuracies.append(float(right.mean()))
        accuracy = f"{curve.accuracies[-1]:.1%}" if curve.accuracies else "–"
        progress.advance(f"loss {curve.losses[-1]:.3f}  held-out {accuracy}")
    return network, curve


def rate(progress: float) -> np.float32:
    """The learning rate: half a cosine, so that large steps come first and fine ones last."""
    return np.float32(0.002 * (1 + np.cos(np.pi * progress)))


def compile_in_stages(*args: object) -> Callable[..., tuple[jax.Array, digits.Network, AdamState]]:
    """The training step compiled for arguments like `args`; says what each stage took and made."""
    traced, trace_time = _timed(lambda: digits.train_step.trace(*args))
    lowered, lower_time = _timed(traced.lower)
    compiled, compile_time = _timed(lowered.compile)
    jaxpr_size = len(str(traced.jaxpr).splitlines())
    module_size = len(lowered.as_text().splitlines())
    say(f"  traced in {1e3 * trace_time:,.0f} ms to {jaxpr_size:,} lines of jaxpr")
    say(f"  lowered in {1e3 * lower_time:,.0f} ms to {module_size:,} lines of StableHLO")
    say(f"  compiled in {1e3 * compile_time:,.0f} ms\n")
    return compiled


def draw(curve: Curve, held_out: digits.Examples, predicted: np.ndarray, path: Path) -> Path:
    """Draws the learning curve beside digits with their predictions, mistakes first and in red."""
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15])
    _draw_curve(left, curve)
    _draw_digits(right, held_out, predicted)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def report(predicted: np.ndarray, held_out: digits.Examples, picture: Path) -> None:
    """Says what was reached and where the picture is."""
    right = int(np.sum(predicted == held_out.labels))
    total = len(predicted)
    paragraph(f"{right} of {total} held-out digits read correctly: {right / total:.1%}.")
    paragraph(f"The learning curve and the mistakes are drawn in {shown(picture)}")


def _draw_curve(figure: Figure, curve: Curve) -> None:
    loss, accuracy = figure.subplots(2, 1, sharex=True)
    steps = np.arange(1, len(curve.losses) + 1)
    loss.semilogy(steps, curve.losses, color="tab:blue", linewidth=0.8, alpha=0.35)
    loss.semilogy(steps, _smooth(curve.losses), color="tab:blue", linewidth=2)
    loss.set_title("loss while training", loc="left")
    epochs = np.linspace(0, len(steps), len(curve.accuracies) + 1)[1:]
    accuracy.plot(epochs, 100 * np.array(curve.accuracies), "o-", color="tab:green", markersize=4)
    accuracy.axhline(100 * GOAL, color="grey", linewidth=1, linestyle=":")
    accuracy.annotate("goal", (steps[-1], 100 * GOAL), ha="right", va="bottom", color="grey")
    accuracy.set_title("held-out accuracy, %", loc="left")
    accuracy.set_xlabel("step")
    for axes in (loss, accuracy):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)


def _draw_digits(figure: Figure, held_out: digits.Examples, predicted: np.ndarray) -> None:
    rows, columns = 4, 8
    wrong = np.flatnonzero(predicted != held_out.labels)
    right = np.flatnonzero(predicted == held_out.labels)
    chosen = np.concatenate([wrong, right])[: rows * columns]
    figure.suptitle(
        f"{len(right)} of {len(predicted)} read correctly; mistakes in red, with the true digit"
    )
    for axes, index in zip(figure.subplots(rows, columns).flat, chosen, strict=True):
        guess, truth = predicted[index], held_out.labels[index]
        axes.imshow(held_out.images[index, :, :, 0], cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        mistaken = guess != truth
        axes.set_title(
            f"{guess}, not {truth}" if mistaken else f"{guess}",
            color="tab:red" if mistaken else "black",
        )
        axes.spines[:].set(
            color="tab:red" if mistaken else "lightgrey", linewidth=2 if mistaken else 1
        )


def _smooth(values: list[float], window: int = 15) -> np.ndarray:
    """The mean over up to `window` neighbours; fewer at the ends."""
    kernel = np.ones(window)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")


def _readable_hlo(text: str) -> str:
    """The computations alone: without source tables, metadata and numbering of the file."""
    text = re.sub(r", (metadata|backend_config)=\{[^{}]*\}", "", text)
    computations = re.findall(
        r"^(?:ENTRY )?%[^\n]*\{\n.*?^\}", text, flags=re.MULTILINE | re.DOTALL
    )
    return "\n".join(computations)


def _timed(function: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    return function(), time.perf_counter() - started


if __name__ == "__main__":
    result = main()
    if result.accuracy < GOAL:
        sys.exit(f"The network reached {result.accuracy:.1%}; at least {GOAL:.0%} was expected.")
