"""Beam search in a while loop: the likeliest names of chemical elements that do not exist.

A model of letters gives the probability of the next letter after the last two. The greedy reader
takes the likeliest letter each time; beam search keeps the best few beginnings. Probabilities only
shrink, so the search may stop once the best beginning is complete: a loop whose length depends on
what it finds. `vmap` searches for every first letter at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

NAMES = """
    actinium aluminium americium antimony argon arsenic astatine barium berkelium beryllium bismuth
    bohrium boron bromine cadmium caesium calcium californium carbon cerium chlorine chromium cobalt
    copernicium copper curium darmstadtium dubnium dysprosium einsteinium erbium europium fermium
    flerovium fluorine francium gadolinium gallium germanium gold hafnium hassium helium holmium
    hydrogen indium iodine iridium iron krypton lanthanum lawrencium lead lithium livermorium
    lutetium magnesium manganese meitnerium mendelevium mercury molybdenum moscovium neodymium neon
    neptunium nickel nihonium niobium nitrogen nobelium oganesson osmium oxygen palladium phosphorus
    platinum plutonium polonium potassium praseodymium promethium protactinium radium radon rhenium
    rhodium roentgenium rubidium ruthenium rutherfordium samarium scandium seaborgium selenium
    silicon silver sodium strontium sulfur tantalum technetium tellurium tennessine terbium thallium
    thorium thulium tin titanium tungsten uranium vanadium xenon ytterbium yttrium zinc zirconium
"""
ELEMENTS = NAMES.split()

# Letter 0 stands before the first letter and after the last.
LETTERS = "-abcdefghijklmnopqrstuvwxyz"
END = 0
LIMIT = 20
WIDTH = 16


class Beam(NamedTuple):
    """The best beginnings, best first: letters [width, LIMIT], log probabilities, completeness."""

    names: jax.Array
    scores: jax.Array
    complete: jax.Array
    length: jax.Array


class Result(NamedTuple):
    """For each first letter the names found, with their log probabilities."""

    greedy: dict[str, tuple[str, float]]
    beam: dict[str, tuple[str, float]]


def main() -> Result:
    """Prints the likeliest name for each first letter, greedily and by beam search."""
    heading(
        "Beam search",
        f"""Letters follow each other as in the names of {len(ELEMENTS)} elements. What is the
        likeliest name that begins with a given letter?""",
    )
    table = letter_model()
    greedy, beam = search_all(table, width=1), search_all(table, width=WIDTH)
    better = [letter for letter in beam if beam[letter][1] > greedy[letter][1] + 1e-4]
    for letter in better:
        (quick, low), (best, high) = greedy[letter], beam[letter]
        say(f"  greedy {quick:<12}{math.exp(low):8.4%}    beam {best:<12}{math.exp(high):8.4%}")
    say()
    paragraph(
        f"""For {len(better)} of {len(beam)} letters a beam of {WIDTH} finds a likelier name than
        the greedy reader, for the others the same."""
    )
    return Result(greedy, beam)


def letter_model() -> np.ndarray:
    """Log probabilities [before last, last, next] of letters, from counts of triples."""
    counts = np.full((len(LETTERS),) * 3, 1e-3)
    for name in ELEMENTS:
        letters = [END, *map(LETTERS.index, name), END]
        for triple in zip(letters, letters[1:], letters[2:], strict=False):
            counts[triple] += 1
    return np.log(counts / counts.sum(axis=-1, keepdims=True)).astype(np.float32)


def search(table: jax.Array, first: jax.Array, width: int) -> Beam:
    """The beam when its best name is complete; names begin with the letter `first`."""
    # All beginnings are the same at first, so only one of them may count.
    start = Beam(
        names=jnp.zeros((width, LIMIT), jnp.int32).at[:, 1].set(first),
        scores=jnp.full(width, -jnp.inf).at[0].set(0.0),
        complete=jnp.zeros(width, bool),
        length=jnp.array(2),
    )

    def unfinished(beam: Beam) -> jax.Array:
        return ~beam.complete[0] & (beam.length < LIMIT)

    def extend(beam: Beam) -> Beam:
        before_last, last = beam.names[:, beam.length - 2], beam.names[:, beam.length - 1]
        # What is complete stays as it is: an empty letter for sure.
        stays = jnp.where(jnp.arange(len(LETTERS)) == END, 0.0, -jnp.inf)
        steps = jnp.where(beam.complete[:, None], stays, table[before_last, last])
        totals = beam.scores[:, None] + steps
        scores, chosen = jax.lax.top_k(totals.ravel(), width)
        parents, letters = jnp.divmod(chosen, len(LETTERS))
        names = beam.names[parents].at[:, beam.length].set(letters)
        return Beam(names, scores, letters == END, beam.length + 1)

    return jax.lax.while_loop(unfinished, extend, start)


def search_all(table: np.ndarray, width: int) -> dict[str, tuple[str, float]]:
    """The best name for each first letter that elements have, with its log probability."""
    firsts = sorted({name[0] for name in ELEMENTS})
    numbers = jnp.array([LETTERS.index(letter) for letter in firsts])
    beams = jax.jit(jax.vmap(lambda first: search(jnp.asarray(table), first, width)))(numbers)
    names = ["".join(LETTERS[n] for n in row if n != END) for row in np.asarray(beams.names[:, 0])]
    return dict(zip(firsts, zip(names, beams.scores[:, 0].tolist(), strict=True), strict=True))


if __name__ == "__main__":
    main()
