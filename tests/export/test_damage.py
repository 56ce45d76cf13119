"""Damaged files are errors, and never the end of the process."""

import pathlib
import textwrap

import numpy as np
import pytest

import minijax as jax
from minijax import export
from minijax.export import seals, tables
from tests import children

_RECORDED = pathlib.Path(__file__).parent / "recorded"
_FLIPS = """
    import pathlib, random, sys
    from minijax import export

    chance = random.Random(0)
    files = [pathlib.Path(name).read_bytes() for name in sys.argv[2:]]
    refused = 0
    for _ in range(int(sys.argv[1])):
        damaged = bytearray(chance.choice(files))
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        try:
            export.deserialize(damaged).mlir_module()
        except (ValueError, NotImplementedError) as error:
            assert "export" in str(error), error
            refused += 1
    print(refused)
"""


def flipped(times, *paths):
    """How many of so many files are refused, each with one bit that is another."""
    program = textwrap.dedent(_FLIPS)
    done = children.run("-c", program, str(times), *map(str, paths), devices=1, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.turns(3)
@pytest.mark.feature("EX-03")
@pytest.mark.slow
def test_ten_thousand_flips_in_files_of_ours(tmp_path):
    paths = []
    for name in ("arithmetic", "ring", "symbolic", "trees", "derivatives"):
        program = export.deserialize((_RECORDED / f"{name}.bin").read_bytes())
        paths.append(tmp_path / name)
        paths[-1].write_bytes(program.serialize(vjp_order=int(program.has_vjp())))
    assert flipped(10_000, *paths) == 10_000


@pytest.mark.turns(3)
@pytest.mark.feature("EX-03")
@pytest.mark.slow
def test_flips_in_files_of_jax():
    paths = [_RECORDED / f"{name}.bin" for name in ("arithmetic", "ring", "trees")]
    # What is in a name or in a place of the source may be another, too.
    assert flipped(24, *paths) >= 8


@pytest.mark.feature("EX-03")
@pytest.mark.parametrize("name", ["arithmetic", "ring", "keys", "trees"])
def test_files_that_end_too_early(name):
    whole = (_RECORDED / f"{name}.bin").read_bytes()
    for length in [*range(16), *range(16, len(whole), 97)]:
        with pytest.raises(ValueError, match="damaged"):
            export.deserialize(whole[:length])


@pytest.mark.feature("EX-03")
def test_what_is_no_file():
    with pytest.raises(TypeError, match="takes the bytes of a file"):
        export.deserialize("text")
    for junk in (b"", b"\0" * 100, b"\xff" * 100, bytes(range(256)) * 4):
        with pytest.raises(ValueError, match="damaged"):
            export.deserialize(junk)


@pytest.mark.feature("EX-03")
def test_programs_of_other_encodings_are_refused():
    program = export.export(jax.jit(lambda x: x + 1))(np.float32(1))
    damaged = program.serialize().replace(b"StableHLO_v", b"StableHLO_w")
    with pytest.raises(ValueError, match="not those that were written"):
        export.deserialize(damaged)
    unsealed, is_ours = seals.opened(bytes(program.serialize()))
    assert is_ours
    with pytest.raises(ValueError, match="does not begin as MLIR's bytecode"):
        export.deserialize(unsealed.replace(b"ML\xefR", b"ML\xefS"))


@pytest.mark.feature("EX-03")
def test_tables_come_back_and_cannot_loop():
    schema = {"Node": {"name": "string", "x": "int16", "next": "Node", "all": "[Node]"}}
    record = {"name": "ä", "x": -3, "next": {"x": 7}, "all": [{}, {"name": "b"}]}
    data = tables.Writer(schema).bytes_of("Node", record)
    found = tables.Reader(schema, data).root("Node")
    assert (found["name"], found["x"], found["next"]["x"]) == ("ä", -3, 7)
    assert [one["name"] for one in found["all"]] == [None, "b"]
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"next": deep}
    with pytest.raises(tables.DamagedError, match="more tables than bytes"):
        tables.Reader(schema, tables.Writer(schema).bytes_of("Node", deep)).root("Node")
