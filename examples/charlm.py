"""A character-level transformer learns a small grammar until it speaks it.

The text comes from a random grammar, so two things are known exactly that are not for real text:
how many bits a sentence holds (no model can need fewer), and whether a sentence is correct. The
verb agrees with its subject even where another noun stands between them: "the hens near every tall
king fear one cat."
"""

from __future__ import annotations

import math
import random
import re
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Panel, Progress, heading, paragraph, show

SINGULAR = {
    "determiners": ["the", "every", "one"],
    "nouns": ["king", "cat", "wolf", "bear", "crow", "hen"],
}
PLURAL = {
    "determiners": ["the", "two", "many"],
    "nouns": ["kings", "cats", "wolves", "bears", "crows", "hens"],
}
ADJECTIVES = ["old", "red", "shy", "tall"]
VERBS = ["see", "fear", "like", "find", "need"]

# Character 0 stands before and after every sentence.
ALPHABET = "\n abcdefghijklmnopqrstuvwxyz."
LENGTH = 64
WIDTH = 48
HEADS = 4
LAYERS = 2
BATCH = 16
STEPS = 900


class Layer(NamedTuple):
    """Attention (queries, keys and values in one), then two dense layers."""

    qkv: jax.Array
    mix: jax.Array
    up: jax.Array
    down: jax.Array


class Transformer(NamedTuple):
    """Embeddings of characters (used for input and output) and of positions, and the layers."""

    characters: jax.Array
    positions: jax.Array
    layers: list[Layer]


class Result(NamedTuple):
    """Bits per sentence of model and grammar; the model's sentences, and how many are correct."""

    model_bits: float
    grammar_bits: float
    correct: float
    sentences: list[str]


def main(steps: int = STEPS) -> Result:
    """Trains the transformer on fresh sentences, then lets it write its own."""
    heading(
        "A character-level transformer",
        f"""Every training sentence is new. A sentence of this grammar holds {grammar_bits():.2f}
        bits, and no model can need fewer on average.""",
    )
    model = learn(steps)
    test = encode([sentence(rng) for rng in [random.Random(1)] for _ in range(512)])
    model_bits = float(jnp.mean(jax.jit(bits)(model, test)))
    written = write(model, count=100)
    correct = sum(map(is_correct, written)) / len(written)
    paragraph(
        f"""The model needs {model_bits:.2f} bits per sentence, the grammar {grammar_bits():.2f}.
        Of {len(written)} sentences that it wrote, {correct:.0%} are correct. Some of them:"""
    )
    show(Panel("written by the model", "\n".join(written[:6])))
    return Result(model_bits, grammar_bits(), correct, written)


def sentence(rng: random.Random) -> str:
    """A random sentence: subject, perhaps another noun phrase near it, verb, object."""
    subject, verb = rng.choice([SINGULAR, PLURAL]), rng.choice(VERBS)
    words = [_noun_phrase(rng, subject)]
    if rng.random() < 0.5:
        words += ["near", _noun_phrase(rng, rng.choice([SINGULAR, PLURAL]))]
    words.append(f"{verb}s" if subject is SINGULAR else verb)
    words.append(_noun_phrase(rng, rng.choice([SINGULAR, PLURAL])))
    return " ".join(words) + "."


def is_correct(text: str) -> bool:
    """Whether the grammar can produce `text`."""
    phrases = [_noun_phrase_pattern(number) for number in (SINGULAR, PLURAL)]
    any_phrase, verbs = f"(?:{'|'.join(phrases)})", "|".join(VERBS)
    return any(
        re.fullmatch(rf"{phrase}(?: near {any_phrase})? (?:{verbs}){ending} {any_phrase}\.", text)
        for phrase, ending in zip(phrases, ["s", ""], strict=True)
    )


def grammar_bits() -> float:
    """The entropy of a sentence: the bits of its choices, as different choices always show."""
    number, adjective = 1, 1 + math.log2(len(ADJECTIVES)) / 2
    phrase = number + math.log2(3) + adjective + math.log2(6)
    return 2 * phrase + (1 + phrase / 2) + math.log2(len(VERBS))


def encode(sentences: list[str]) -> np.ndarray:
    """The sentences as rows of LENGTH character numbers, with character 0 before and after."""
    rows = np.zeros((len(sentences), LENGTH), np.int32)
    for row, text in zip(rows, sentences, strict=True):
        row[1 : len(text) + 1] = [ALPHABET.index(character) for character in text]
    return rows


def decode(row: np.ndarray) -> str:
    """The sentence in a row of character numbers."""
    text = "".join(ALPHABET[number] for number in row[1:])
    return text.split("\n", maxsplit=1)[0]


def init_model(key: jax.Array) -> Transformer:
    """Random weights, scaled so that signals keep their size."""
    keys = iter(jax.random.split(key, 2 + 4 * LAYERS))

    def normal(rows: int, columns: int, size: float) -> jax.Array:
        return size * jax.random.normal(next(keys), (rows, columns))

    def layer() -> Layer:
        return Layer(
            qkv=normal(WIDTH, 3 * WIDTH, WIDTH**-0.5),
            mix=normal(WIDTH, WIDTH, WIDTH**-0.5),
            up=normal(WIDTH, 4 * WIDTH, WIDTH**-0.5),
            down=normal(4 * WIDTH, WIDTH, (4 * WIDTH) ** -0.5),
        )

    return Transformer(
        characters=normal(len(ALPHABET), WIDTH, WIDTH**-0.5),
        positions=normal(LENGTH, WIDTH, WIDTH**-0.5),
        layers=[layer() for _ in range(LAYERS)],
    )


def logits(model: Transformer, rows: jax.Array) -> jax.Array:
    """From characters [n, length] to scores for the next ones [n, length, alphabet]."""
    length = rows.shape[1]
    x = model.characters[rows] + model.positions[:length]
    for layer in model.layers:
        x = x + attend(layer, normalized(x))
        x = x + jax.nn.gelu(normalized(x) @ layer.up) @ layer.down
    return normalized(x) @ model.characters.T


def attend(layer: Layer, x: jax.Array) -> jax.Array:
    """Each position gathers what it needs from itself and from those before it."""
    rows, length, _ = x.shape
    heads = (x @ layer.qkv).reshape(rows, length, HEADS, 3 * WIDTH // HEADS)
    queries, keys, values = jnp.split(heads, 3, axis=-1)
    scores = jnp.einsum("nqhd,nkhd->nhqk", queries, keys) / math.sqrt(WIDTH // HEADS)
    earlier = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), axis=-1)
    gathered = jnp.einsum("nhqk,nkhd->nqhd", weights, values)
    return gathered.reshape(rows, length, WIDTH) @ layer.mix


def normalized(x: jax.Array) -> jax.Array:
    """`x` scaled so that its mean square over the last axis is one."""
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def bits(model: Transformer, rows: jax.Array) -> jax.Array:
    """The bits that the model needs for each sentence, its end included."""
    return bits_of(logits(model, rows[:, :-1]), rows)


def bits_of(scores: jax.Array, rows: jax.Array) -> jax.Array:
    """The bits for each sentence, where `scores` were given to its characters."""
    inputs, targets = rows[:, :-1], rows[:, 1:]
    log_probs = jax.nn.log_softmax(scores)
    needed = -jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0] / math.log(2)
    # A position counts if it lies in the sentence or is the first one after it.
    counts = (targets != 0) | ((inputs != 0) & (targets == 0))
    return jnp.sum(jnp.where(counts, needed, 0), axis=-1)


@jax.jit
def train_step(
    model: Transformer, state: AdamState, rows: jax.Array, rate: jax.Array
) -> tuple[jax.Array, Transformer, AdamState]:
    """The mean bits per sentence, and model and optimizer state after one step of Adam."""
    value, grads = jax.value_and_grad(lambda m: jnp.mean(bits(m, rows)))(model)
    model, state = adam_update(model, grads, state, rate)
    return value, model, state


def learn(steps: int) -> Transformer:
    """The transformer after `steps` batches of fresh sentences."""
    rng = random.Random(0)
    model = init_model(jax.random.key(0))
    state = adam_init(model)
    progress = Progress(steps, "training")
    for number in range(1, steps + 1):
        rows = encode([sentence(rng) for _ in range(BATCH)])
        # The rate rises over the first 30 steps, then falls along half a cosine.
        rate = 0.015 * min(1, number / 30) * (1 + math.cos(math.pi * number / steps)) / 2
        value, model, state = train_step(model, state, rows, np.float32(rate))
        progress.advance(f"{float(value):.2f} bits per sentence")
    return model


@jax.jit
def add_character(
    model: Transformer, rows: jax.Array, position: jax.Array, key: jax.Array
) -> jax.Array:
    """The rows with a character drawn by the model at `position`."""
    scores = logits(model, rows)[:, position - 1]
    return rows.at[:, position].set(jax.random.categorical(key, scores).astype(rows.dtype))


def write(model: Transformer, count: int) -> list[str]:
    """Sentences drawn from the model, character by character."""
    rows = jnp.zeros((count, LENGTH), jnp.int32)
    for position, key in enumerate(jax.random.split(jax.random.key(1), LENGTH - 1), start=1):
        rows = add_character(model, rows, position, key)
    return [decode(row) for row in np.asarray(rows)]


def _noun_phrase(rng: random.Random, number: dict[str, list[str]]) -> str:
    words = [rng.choice(number["determiners"])]
    if rng.random() < 0.5:
        words.append(rng.choice(ADJECTIVES))
    return " ".join([*words, rng.choice(number["nouns"])])


def _noun_phrase_pattern(number: dict[str, list[str]]) -> str:
    determiners, nouns = "|".join(number["determiners"]), "|".join(number["nouns"])
    return rf"(?:{determiners})(?: (?:{'|'.join(ADJECTIVES)}))? (?:{nouns})"


if __name__ == "__main__":
    main()
