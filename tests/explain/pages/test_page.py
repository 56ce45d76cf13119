"""`explain.page` links every line of a program to what became of it."""

import base64
import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.explain.pages import marking
from minijax.sharding import AxisType, NamedSharding, PartitionSpec

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "minijax" / "explain" / "pages" / "assets"
WEB = ROOT / "web"
P = PartitionSpec

pytestmark = pytest.mark.feature("PG-01")


def wave(w, x):
    unused = jnp.cos(x)  # noqa: F841
    return jnp.sum(x * jnp.sin(w * x))


def column(page, key):
    return next(c["lines"] for c in page.data["columns"] if c["key"] == key)


def equation(page, name):
    return next(e for e in page.data["equations"] if e["name"] == name)


def lines_of(page, key, number):
    return [line["t"] for line in column(page, key) if number in line.get("n", ())]


@pytest.fixture
def page():
    return jax.explain.page(wave)(2.0, jnp.arange(4.0))


def test_page_has_a_column_for_each_stage(page):
    keys = [c["key"] for c in page.data["columns"]]
    assert keys == ["python", "jaxpr", "stablehlo", "optimized"]


def test_equation_is_found_in_all_columns(page):
    number = equation(page, "sin")["number"]
    assert lines_of(page, "python", number) == ["return jnp.sum(x * jnp.sin(w * x))"]
    assert lines_of(page, "jaxpr", number) == ["e:f32[4] = sin d"]
    assert lines_of(page, "stablehlo", number) == ["%2 = stablehlo.sine %1 : tensor<4xf32>"]
    assert any(" sine(" in text for text in lines_of(page, "optimized", number))


def test_fusion_has_the_equations_of_all_its_lines(page):
    names = [e["name"] for e in page.data["equations"]]
    fusions = [line["n"] for line in column(page, "optimized") if " fusion(" in line["t"]]
    assert {"mul", "sin"} <= {names[number] for number in max(fusions, key=len)}


def test_dead_equation_says_so(page):
    assert equation(page, "cos")["fate"]["stablehlo"] == "dead: no result depends on it"


def test_equation_tells_type_bytes_meaning_and_reason(page):
    found = equation(page, "sin")
    assert found["types"] == ["f32[4]"]
    assert found["bytes"] == 16
    assert found["meaning"] == "The sine of `x`."
    assert found["why"] == "your line asks for it."
    assert found["line"].startswith("test_page.py:")


def test_values_are_those_of_one_run(page):
    found = next(v for v in page.data["values"] if v.get("number") == 1)
    assert found["shape"] == [4]
    np.testing.assert_allclose(found["numbers"], [0.0, 2.0, 4.0, 6.0])


def test_derivative_is_told_from_the_function():
    page = jax.explain.page(jax.grad(wave))(2.0, jnp.arange(4.0))
    roles = {e["role"] for e in page.data["equations"]}
    assert roles == {"primal", "derivative"}


def test_derivative_stands_beside_the_function_itself():
    page = jax.explain.page(jax.grad(wave))(2.0, jnp.arange(4.0))
    keys = [c["key"] for c in page.data["columns"]]
    assert keys == ["python", "original", "jaxpr", "stablehlo", "optimized"]
    names = [e["name"] for e in page.data["equations"]]
    sine = next(line for line in column(page, "original") if " = sin " in line["t"])
    assert {names[number] for number in sine["n"]} >= {"sin", "cos"}


def test_what_a_derivative_needs_says_so():
    page = jax.explain.page(jax.grad(wave))(2.0, jnp.arange(4.0))
    needed = [e["why"] for e in page.data["equations"] if e["name"] == "cos"]
    assert "the derivative of `lax.sin` on this line needs it." in needed


def test_loop_folds_and_its_body_is_linked():
    def count(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + i, x)

    page = jax.explain.page(count)(1.0)
    number = equation(page, "sin")["number"]
    assert page.data["equations"][number]["depth"] == 1
    assert lines_of(page, "stablehlo", number)
    assert lines_of(page, "optimized", number)


def test_split_program_has_columns_of_shardy_and_of_one_device():
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
        page = jax.explain.page(lambda x: x / jnp.sum(x))(x)
    keys = [c["key"] for c in page.data["columns"]]
    assert keys == ["python", "jaxpr", "stablehlo", "propagated", "partitioned", "optimized"]
    number = equation(page, "reduce_sum")["number"]
    assert any("all-reduce" in text for text in lines_of(page, "partitioned", number))
    held = page.data["values"][0]["devices"]
    assert [h["part"] for h in held] == [[[0, 2]], [[2, 4]], [[4, 6]], [[6, 8]]]


@pytest.mark.feature("PG-06")
def test_pmap_has_a_page():
    with jax.cpu_devices(2):
        scale = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
        page = jax.explain.page(scale)(jnp.ones((2, 3)))
    number = equation(page, "psum")["number"]
    assert any("all_reduce" in text for text in lines_of(page, "stablehlo", number))
    assert any("all-reduce" in text for text in lines_of(page, "optimized", number))


def test_pvary_says_which_operation_wants_it():
    with jax.cpu_devices(2):
        mesh = jax.make_mesh((2,), ("x",))

        def centered(rows):
            return rows - jax.lax.pmean(rows, "x")

        mapped = jax.shard_map(centered, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        page = jax.explain.page(mapped)(jnp.arange(4.0))
    found = equation(page, "pvary")
    assert found["why"].startswith("`sub` wants all operands to vary over x")
    assert found["explained"] == ["f32[2]{V:x}: V, it may differ between devices along x"]


def test_page_is_one_file_without_addresses(page, tmp_path):
    text = page.save(tmp_path / "wave.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2 << 20
    assert "src=" not in text.partition("<script>")[0]
    start = text.index('id="data">') + len('id="data">')
    packed = text[start : text.index("</script>", start)]
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == page.data
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_text_of_a_program_cannot_end_the_data(tmp_path):
    def named(x):
        with jax.named_scope("</script>"):
            return x + 1

    text = jax.explain.page(named)(1.0).html()
    assert text.count("</script>") == 2


def test_lowering_without_a_page_is_as_it_was():
    jitted = jax.jit(wave)
    x = jnp.arange(4.0)
    before = jitted.lower(2.0, x).as_text(debug_info=True)
    jax.explain.page(jitted)(2.0, x)
    assert jitted.lower(2.0, x).as_text(debug_info=True) == before
    assert "~" not in before


def test_marks_are_read_from_names():
    assert marking.marks("jit(f)/~2/scan/~17/mul") == [2, 17]
    assert marking.own_mark(["jit(f)/~2/scan/~17/mul", "x~y"]) == {17}


def test_page_refuses_what_is_no_function():
    with pytest.raises(TypeError, match=r"explain\.page: expected a function"):
        jax.explain.page(3)


def test_built_front_end_is_that_of_the_sources():
    digest = hashlib.sha256()
    for path in sorted((WEB / "src").iterdir()):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    digest.update((WEB / "package-lock.json").read_bytes())
    built = (ASSETS / "sources.sha256").read_text().strip()
    assert built == digest.hexdigest(), "the built page is stale: run `make web`"
