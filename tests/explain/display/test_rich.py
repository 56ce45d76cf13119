"""What notebooks show of programs, arrays, meshes and reports."""

import base64
import re
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.display import arrays, highlighting, markup
from minijax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

P = PartitionSpec

pytestmark = pytest.mark.feature("PG-04")


class _Reader(HTMLParser):
    """Checks that elements end where they should, and gathers the text."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text_of(value):
    """The text of what a notebook shows of a value, whose elements are well formed."""
    reader = _Reader()
    reader.feed(value._repr_html_())
    assert reader.open == []
    return reader.text


def layer(x, w):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@pytest.fixture
def split():
    with jax.cpu_devices(8):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

        def put(value, *spec):
            return jax.device_put(value, NamedSharding(mesh, P(*spec)))

        yield mesh, put


class TestPrograms:
    def test_jaxpr_is_shown_whole(self):
        closed = jax.make_jaxpr(layer)(jnp.ones((2, 3)), jnp.ones((3, 4)))
        assert text_of(closed) == text_of(closed.jaxpr) == str(closed)

    def test_stages_of_jit_say_what_they_are(self):
        traced = jax.jit(layer).trace(jnp.ones((2, 3)), jnp.ones((3, 4)))
        lowered = traced.lower()
        compiled = lowered.compile()
        kinds = ((traced, "Traced"), (lowered, "Lowered"), (compiled, "Compiled"))
        for stage, kind in kinds:
            assert text_of(stage).startswith(f"{kind} layer (f32[2,3], f32[3,4]) → (f32[])")
        assert "dot_general" in text_of(traced)
        assert "stablehlo.tanh" in text_of(lowered)
        assert "72 B of arguments, 4 B of results" in text_of(compiled)
        assert "metadata" not in text_of(compiled)

    def test_large_constants_are_left_out(self):
        table = np.arange(5000.0, dtype=np.float32)
        lowered = jax.jit(lambda i: jnp.asarray(table)[i]).lower(0)
        assert len(text_of(lowered)) < 3000

    def test_long_programs_are_cut(self):
        text = "\n".join(map(str, range(markup.MOST_LINES + 7)))
        assert "… 7 more lines" in markup.program(text, "jaxpr")

    def test_all_stages_fold(self):
        stages = explain.stages(layer)(jnp.ones((2, 3)), jnp.ones((3, 4)))
        html = stages._repr_html_()
        assert html.count("<details") == len(stages)
        assert text_of(stages).startswith("stages of layerjaxpr")

    def test_linear_function_shows_its_program(self):
        _, push = jax.linearize(jnp.sin, 1.0)
        _, pull = jax.vjp(jnp.sin, 1.0)
        assert text_of(push) == f"linear function 1 value kept, 4 B{push}"
        assert "mul" in text_of(pull)


class TestReports:
    def test_collectives_and_plans_are_their_tables(self, split):
        mesh, put = split
        args = put(jnp.ones((8, 4)), "x", "y"), put(jnp.ones((4, 4)), "y")
        for report in (explain.collectives(layer)(*args), explain.plan(layer, mesh)(*args)):
            assert text_of(report) == str(report)
            assert re.search('color:[^"]*">all_reduce<', report._repr_html_())

    def test_what_xla_did_is_shown_as_it_is_printed(self):
        for report in (explain.fusions(layer), explain.memory(layer)):
            found = report(jnp.ones((2, 3)), jnp.ones((3, 4)))
            assert text_of(found) == str(found)

    def test_retraces_are_a_table(self):
        f = jax.jit(lambda x: x + 1)
        f(1), f(1.0)
        shown = text_of(explain.retraces(f))
        assert "type of a Python scalar" in shown


class TestMeshes:
    def test_mesh_is_a_grid_of_devices(self, split):
        shown = text_of(split[0])
        assert shown.startswith("Mesh of 8 devices x=4 (Auto), y=2 (Auto)x ↓  y →01")
        assert all(f"cpu:{i}" in shown for i in range(8))

    def test_outer_axes_give_several_grids(self):
        shown = text_of(AbstractMesh((2, 2, 2), ("a", "b", "c")))
        assert "a=0" in shown
        assert "a=1" in shown

    def test_large_and_empty_meshes_are_a_line(self):
        assert text_of(AbstractMesh((64, 64), ("a", "b"))).endswith("a=64 (Auto), b=64 (Auto)")
        assert text_of(AbstractMesh((), ())) == "AbstractMesh of 0 devices"


class TestArrays:
    def test_scalar_is_its_text(self):
        assert jnp.float32(3)._repr_html_() is None

    def test_small_array_shows_its_numbers(self):
        shown = text_of(jnp.array([[1.5, -2.0], [0.0, jnp.nan]]))
        assert shown.startswith("f32[2,2] 16 B · cpu:0 · -2 … 1.5 · 1 NaN")
        assert "[0, 1] = -2.0" in shown
        assert "[1, 1] = nan" in shown

    @pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64", "float16"])
    def test_every_kind_of_number_is_shown(self, dtype):
        assert "[1] = " in text_of(jnp.arange(2).astype(dtype))

    def test_large_array_is_an_image(self):
        html = jnp.ones((200, 100))._repr_html_()
        data = base64.b64decode(re.search('base64,([^"]*)', html)[1])
        assert data.startswith(b"\x89PNG")
        assert struct.unpack(">II", data[16:24]) == (64, 64)
        start = data.index(b"IDAT") + 4
        pixels = zlib.decompressobj().decompress(data[start:])
        assert pixels[1:4] == bytes((235, 130, 60))

    def test_image_is_made_of_means(self):
        matrix = np.repeat(np.arange(64.0), 3)[None]
        np.testing.assert_allclose(arrays.shrunk(matrix)[0], np.arange(64.0))

    def test_split_array_tells_who_holds_what(self, split):
        _, put = split
        x = put(jnp.arange(32.0).reshape(8, 4), "x", "y")
        shown = text_of(x)
        assert "P('x', 'y') on (x=4, y=2)" in shown
        assert "cpu:5 [4:6, 2:4]" in shown
        assert x._repr_html_().count("<rect") == 32 + 2 * 8

    def test_copies_share_a_part(self, split):
        _, put = split
        assert "cpu:0, cpu:2, cpu:4, cpu:6 [0:2]" in text_of(put(jnp.arange(4.0), "y"))

    def test_frames_of_higher_ranks_stand_at_their_rows(self):
        # The second dimension is cut: rows 0 and 2 of the picture belong to its first half.
        boxes = arrays.boxes(((0, 2), (0, 1), (0, 4)), (2, 2, 4))
        assert list(boxes) == [(0, 1, 0, 4), (2, 3, 0, 4)]
        boxes = arrays.boxes(((1, 2), (0, 2), (0, 4)), (2, 2, 4))
        assert list(boxes) == [(2, 4, 0, 4)]

    def test_equal_keys_have_equal_colours(self):
        key = jax.random.key(7)
        keys = jax.random.split(key, 2)
        shown = text_of(keys)
        assert shown.startswith("key<fry>[2]")
        color = "hsl[^;]*"
        again = jax.random.wrap_key_data(jax.random.key_data(key))
        assert re.findall(color, key._repr_html_()) == re.findall(color, again._repr_html_())
        assert len(set(re.findall(color, keys._repr_html_()))) == 2

    def test_what_cannot_be_read_is_not_read(self):
        x = jnp.ones(3)
        x.delete()
        assert x._repr_html_() is None
        assert "<image" not in jnp.ones((2048, 1024))._repr_html_()
        assert text_of(jnp.zeros((0, 3))) == "f32[0,3] 0 B · cpu:0"


class TestColours:
    def test_colours_are_read_on_white_and_on_black(self):
        def luminance(color):
            parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
            return np.dot(linear, (0.2126, 0.7152, 0.0722))

        for style in highlighting.STYLES.values():
            for color in re.findall("#[0-9a-f]{6}", style.css):
                assert 1.05 / (luminance(color) + 0.05) > 4.3
                assert (luminance(color) + 0.05) / (luminance("#111111") + 0.05) > 4.1

    def test_without_pygments_text_is_plain(self):
        program = (
            "import sys; sys.modules['pygments'] = sys.modules['pygments.lexer'] = None\n"
            "import minijax as jax\n"
            "print(jax.make_jaxpr(lambda x: x + 1)(1.0)._repr_html_())\n"
            "jax.explain.show(jax.make_jaxpr(lambda x: x + 1)(1.0), color=True)"
        )
        command = [sys.executable, "-c", program]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "<span" not in shown
        assert "\x1b" not in shown
        assert shown.count("add a 1.0:f32[]") == 2

    def test_text_is_escaped_once(self):
        assert highlighting.to_html("<a> & 'b'", "nothing") == "&lt;a&gt; &amp; &#x27;b&#x27;"
        assert highlighting.to_html("tensor<2xf32>", "stablehlo").count("&lt;") == 1

    @pytest.mark.parametrize("language", ["jaxpr", "stablehlo", "hlo", "report", "cell"])
    def test_no_letter_is_lost(self, language):
        text = '  a:f32[2]{V:x} = add[k=1] b 2.0:f32[] "s\n%x.1 // µ → é\n\n'
        plain = re.sub("\x1b\\[[0-9]*m", "", highlighting.to_ansi(text, language))
        assert plain == text
