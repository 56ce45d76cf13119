"""Dtypes: names, the 64-bit switch, kinds, and promotion against JAX's recorded tables."""

import json
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import nn
from minijax.core import config, dtype_queries, dtypes

pytestmark = pytest.mark.feature("CR-13")

RECORDED = json.loads(
    pathlib.Path(__file__).with_name("promotion_table.json").read_text(encoding="utf-8")
)
BY_SHORT_NAME = {dtypes.short_name(dtype): dtype for dtype in dtypes.ALL}
PYTHON_VALUES = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
PYTHON_TYPES = {"int": int, "float": float, "complex": complex}
JAX_ITSELF_FAILS = "?"

standard_dtypes = st.sampled_from(dtypes.ALL)
all_types = st.one_of(standard_dtypes, st.sampled_from([int, float, complex]))


class Operand:
    """Stands for an array: all that promotion reads of one."""

    def __init__(self, dtype, weak_type=False):
        self.dtype = dtype
        self.weak_type = weak_type


class KeyDType(dtypes.ExtendedDType):
    """An extended dtype, as random keys have."""

    itemsize = 8
    type = dtypes.prng_key

    def __init__(self, name="key<fry>"):
        self.name = name

    def __eq__(self, other):
        return type(other) is KeyDType and self.name == other.name

    def __hash__(self):
        return hash(self.name)


def operand(text):
    if text in PYTHON_VALUES:
        return PYTHON_VALUES[text]
    return Operand(BY_SHORT_NAME[text.removesuffix("*")], text.endswith("*"))


def answer(promote, *args):
    """The result in the notation of the recorded tables."""
    try:
        dtype, weak = promote(*args)
    except dtypes.TypePromotionError:
        return "-"
    return dtypes.short_name(dtype) + "*" * weak


def weak_result_type(*args):
    return dtypes.result_type(*args, return_weak_type_flag=True)


def promote_types(a, b):
    return dtypes.promote_types(a, b), False


FUNCTIONS = {
    "lattice_result_type": dtypes.lattice_result_type,
    "result_type": weak_result_type,
}

each_recorded_table = pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, id=f"{table['function']}-{table['mode']}-x64={table['x64']}")
        for table in RECORDED["tables"]
    ],
)


@each_recorded_table
def test_promotion_of_every_pair_is_that_of_jax(table):
    promote = FUNCTIONS[table["function"]]
    names = RECORDED["operands"].split()
    differences = []
    with config.enable_x64(table["x64"]), config.numpy_dtype_promotion(table["mode"]):
        for i, (a, row) in enumerate(zip(names, table["pairs"], strict=True)):
            for b, wanted in zip(names[: i + 1], row.split(), strict=True):
                for pair in ((a, b), (b, a)):
                    got = answer(promote, *map(operand, pair))
                    if wanted not in (got, JAX_ITSELF_FAILS):
                        differences.append((pair, got, wanted))
    assert differences == []


@each_recorded_table
def test_promotion_of_one_operand_is_that_of_jax(table):
    promote = FUNCTIONS[table["function"]]
    wanted = dict(zip(RECORDED["operands"].split(), table["alone"].split(), strict=True))
    with config.enable_x64(table["x64"]), config.numpy_dtype_promotion(table["mode"]):
        got = {name: answer(promote, operand(name)) for name in wanted}
    known = {name: text for name, text in wanted.items() if text != JAX_ITSELF_FAILS}
    assert {name: got[name] for name in known} == known


@pytest.mark.parametrize("x64", [False, True])
def test_promote_types_of_every_pair_is_that_of_jax(x64):
    def type_of(name):
        return PYTHON_TYPES.get(name) or BY_SHORT_NAME[name]

    names = RECORDED["types"].split()
    rows = RECORDED["promote_types"]["x64" if x64 else "x32"]
    differences = []
    with config.enable_x64(x64):
        for i, (a, row) in enumerate(zip(names, rows, strict=True)):
            for b, wanted in zip(names[: i + 1], row.split(), strict=True):
                got = answer(promote_types, type_of(a), type_of(b))
                if got != wanted:
                    differences.append(((a, b), got, wanted))
    assert differences == []


def test_result_type_of_a_weak_sub_byte_integer_is_the_default_integer():
    assert weak_result_type(Operand(dtypes.int4, weak_type=True)) == (np.int32, True)


@given(all_types, all_types)
def test_promotion_commutes(a, b):
    assert answer(promote_types, a, b) == answer(promote_types, b, a)


@given(standard_dtypes)
def test_promotion_is_idempotent(dtype):
    assert dtypes.promote_types(dtype, dtype) == dtype


@given(*3 * [st.one_of(standard_dtypes.map(Operand), st.sampled_from([True, 1, 1.0, 1j]))])
def test_promotion_associates(a, b, c):
    def pairwise(x, y, z):
        return dtypes.lattice_result_type(Operand(*dtypes.lattice_result_type(x, y)), z)

    with config.enable_x64(True):
        together = answer(dtypes.lattice_result_type, a, b, c)
        assert answer(pairwise, a, b, c) == together
        assert answer(pairwise, b, c, a) == together


def test_three_operands_join_at_once():
    # Pairwise, the strong int8 and the weak kind decide; uint64 with int8 alone would be a float.
    operands = [Operand(dtypes.uint64), Operand(dtypes.int8), Operand(dtypes.bfloat16)]
    with config.enable_x64(True):
        assert dtypes.lattice_result_type(*operands) == (dtypes.bfloat16, False)


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ((1,), (np.int32, True)),
        ((True,), (np.bool_, False)),
        ((float,), (np.float32, True)),
        ((int, np.int8), (np.int8, False)),
        (("float32", "bfloat16"), (np.float32, False)),
        ((None, np.int8), (np.float32, False)),
        ((np.float64(1.0), np.float16), (np.float32, False)),
        ((np.arange(3), 1.5), (np.float32, True)),
        ((dtypes.SCALAR_TYPES["float16"], 2.0), (np.float16, False)),
    ],
)
def test_result_type_accepts_values_and_names(args, wanted):
    assert weak_result_type(*args) == wanted


def test_result_type_of_nothing_is_refused():
    with pytest.raises(ValueError, match="result_type: needs at least one array or dtype"):
        dtypes.result_type()


def test_result_type_refuses_objects():
    with pytest.raises(TypeError, match="result_type: arrays cannot have this dtype"):
        dtypes.result_type(np.array([None]), 1)


def test_result_type_follows_the_x64_switch_on_repeated_calls():
    x = np.float64(1.0)
    assert dtypes.result_type(x, x) == np.float32
    with config.enable_x64(True):
        assert dtypes.result_type(x, x) == np.float64
    assert dtypes.result_type(x, x) == np.float32


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ((dtypes.int4, dtypes.int8), "integers of 2 or 4 bits never promote"),
        ((dtypes.float8_e5m2, dtypes.float32), "floats of 8 bits or fewer never promote"),
        ((dtypes.int4, float), "Python float"),
    ],
)
def test_failed_promotion_says_why_and_how_to_mend_it(pair, reason):
    with pytest.raises(dtypes.TypePromotionError, match=r"(?s)dtype promotion: .*astype") as caught:
        dtypes.promote_types(*pair)
    assert reason in str(caught.value)


def test_strict_promotion_names_the_setting():
    with (
        config.numpy_dtype_promotion("strict"),
        pytest.raises(dtypes.TypePromotionError, match="numpy_dtype_promotion is 'strict'"),
    ):
        dtypes.promote_types(np.int8, np.int16)


def test_extended_dtypes_promote_to_themselves():
    assert dtypes.promote_types(KeyDType(), KeyDType()) == KeyDType()


@pytest.mark.parametrize("other", [np.dtype(np.int8), dtypes.float0, KeyDType("key<rbg>")])
def test_extended_dtypes_promote_with_nothing_else(other):
    with pytest.raises(dtypes.TypePromotionError, match="combines with no other dtype"):
        dtypes.result_type(Operand(KeyDType()), Operand(other))


def test_float0_promotes_to_itself():
    assert dtypes.result_type(dtypes.float0, dtypes.float0) == dtypes.float0


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (dtypes.bool_, "bool"),
        (dtypes.int4, "i4"),
        (dtypes.uint8, "u8"),
        (dtypes.int32, "i32"),
        (dtypes.bfloat16, "bf16"),
        (dtypes.float32, "f32"),
        (dtypes.float8_e4m3fn, "f8_e4m3fn"),
        (dtypes.float8_e4m3b11fnuz, "f8_e4m3b11fnuz"),
        (dtypes.float4_e2m1fn, "f4_e2m1fn"),
        (dtypes.complex64, "c64"),
        (dtypes.float0, "float0"),
        (KeyDType(), "key<fry>"),
    ],
)
def test_short_name_is_that_of_jaxprs(dtype, name):
    assert dtypes.short_name(dtype) == name


@pytest.mark.parametrize(
    ("dtype_like", "narrow", "wide"),
    [
        (float, "float32", "float64"),
        (int, "int32", "int64"),
        (complex, "complex64", "complex128"),
        (bool, "bool", "bool"),
        ("float64", "float32", "float64"),
        (np.uint64, "uint32", "uint64"),
        (np.dtype("int64"), "int32", "int64"),
        ("bfloat16", "bfloat16", "bfloat16"),
        (None, "float32", "float64"),
        (dtypes.SCALAR_TYPES["float64"], "float32", "float64"),
        (dtypes.float0, dtypes.float0, dtypes.float0),
        (KeyDType(), KeyDType(), KeyDType()),
    ],
)
def test_canonicalize_dtype_halves_64_bits_unless_x64(dtype_like, narrow, wide):
    assert dtypes.canonicalize_dtype(dtype_like) == narrow
    with config.enable_x64(True):
        assert dtypes.canonicalize_dtype(dtype_like) == wide


@pytest.mark.parametrize("not_a_dtype", ["foo", 3, np.floating, dtypes.prng_key])
def test_canonicalize_dtype_refuses_what_is_no_dtype(not_a_dtype):
    with pytest.raises(TypeError, match="canonicalize_dtype: not a dtype"):
        dtypes.canonicalize_dtype(not_a_dtype)


@pytest.mark.parametrize("dtype_like", ["float64", np.int64, np.dtype("complex128"), "uint64"])
def test_user_dtype_of_64_bits_warns_without_x64(dtype_like):
    with pytest.warns(UserWarning, match=r"jnp\.zeros: dtype .* is not available"):
        dtypes.canonicalize_user_dtype(dtype_like, "jnp.zeros")


@pytest.mark.parametrize("dtype_like", [float, int, complex, None, np.float32, "int8", KeyDType()])
def test_user_dtype_that_asks_for_no_width_does_not_warn(dtype_like):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = dtypes.canonicalize_user_dtype(dtype_like, "jnp.zeros")
    assert result == dtypes.canonicalize_dtype(dtype_like)


def test_user_dtype_of_64_bits_stays_with_x64():
    with config.enable_x64(True):
        assert dtypes.canonicalize_user_dtype("float64", "jnp.zeros") == np.float64


# On macOS with ARM, and on Windows, a long double is a double.
LONG_DOUBLE = [np.longdouble] if np.dtype(np.longdouble).itemsize > 8 else []


@pytest.mark.parametrize(
    "dtype_like",
    [object, "U3", np.datetime64, *LONG_DOUBLE, ">f4", ml_dtypes.int1, [("a", "i4")]],
)
def test_user_dtype_that_arrays_cannot_have_is_refused(dtype_like):
    with pytest.raises(TypeError, match=r"jnp\.zeros: arrays cannot have this dtype"):
        dtypes.canonicalize_user_dtype(dtype_like, "jnp.zeros")


def test_user_dtype_given_as_an_array_is_refused():
    with pytest.raises(ValueError, match=r"(?s)jnp.zeros: an array was given.*x\.dtype"):
        dtypes.canonicalize_user_dtype(np.ones(3), "jnp.zeros")


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (dtypes.bfloat16, np.floating, True),
        (dtypes.bfloat16, np.number, True),
        (dtypes.bfloat16, np.float32, False),
        (dtypes.bfloat16, float, False),
        (dtypes.bfloat16, np.complexfloating, False),
        (dtypes.float8_e5m2, np.inexact, True),
        ("int4", np.signedinteger, True),
        (dtypes.uint4, np.unsignedinteger, True),
        (dtypes.uint4, np.signedinteger, False),
        (dtypes.int4, np.int8, False),
        (np.float64, float, True),
        (np.float32, float, False),
        (bool, np.integer, False),
        (np.integer, np.number, True),
        (np.float32, dtypes.extended, False),
        (dtypes.float0, np.floating, False),
        (dtypes.float0, np.void, True),
        (KeyDType(), dtypes.prng_key, True),
        (KeyDType(), dtypes.extended, True),
        (KeyDType(), np.generic, True),
        (KeyDType(), np.floating, False),
        (KeyDType(), KeyDType(), True),
        (KeyDType(), KeyDType("key<rbg>"), False),
        (dtypes.prng_key, dtypes.extended, True),
        (dtypes.SCALAR_TYPES["float32"], np.floating, True),
        (np.float32, dtypes.SCALAR_TYPES["float32"], True),
        (np.float32, dtypes.SCALAR_TYPES["bfloat16"], False),
    ],
)
def test_issubdtype_knows_every_kind(a, b, wanted):
    assert dtypes.issubdtype(a, b) is wanted


def test_issubdtype_refuses_what_is_no_dtype():
    with pytest.raises(TypeError, match="issubdtype: not a dtype"):
        dtypes.issubdtype("foo", np.integer)


@given(st.sampled_from([d for d in dtypes.ALL if d.type.__module__ == "numpy"]))
def test_issubdtype_is_that_of_numpy_on_its_dtypes(dtype):
    kinds = (np.generic, np.number, np.integer, np.floating, np.inexact, np.bool_, np.int8, dtype)
    assert [dtypes.issubdtype(dtype, k) for k in kinds] == [np.issubdtype(dtype, k) for k in kinds]


@pytest.mark.parametrize(
    ("dtype", "kind", "wanted"),
    [
        ("int32", "integral", True),
        ("int4", "signed integer", True),
        ("uint4", "unsigned integer", True),
        ("bfloat16", "real floating", True),
        ("complex64", "numeric", True),
        ("bool", "numeric", False),
        ("int32", ("real floating", "bool"), False),
        ("int32", ("bool", np.int32), True),
        ("int32", "int32", True),
        (np.float32, dtypes.SCALAR_TYPES["float32"], True),
    ],
)
def test_isdtype_follows_the_array_api(dtype, kind, wanted):
    assert dtype_queries.isdtype(dtype, kind) is wanted


@pytest.mark.parametrize(
    ("kind", "error"), [("foo", ValueError), (3, TypeError), (np.integer, TypeError)]
)
def test_isdtype_refuses_unknown_kinds(kind, error):
    with pytest.raises(error, match=r"numpy\.isdtype: `kind` names no kind of dtype"):
        dtype_queries.isdtype("int32", kind)


def test_finfo_knows_small_floats():
    assert float(dtypes.finfo("float8_e4m3fn").max) == 448.0


def test_finfo_of_a_complex_dtype_is_that_of_its_parts():
    assert dtypes.finfo(np.complex64).dtype == np.float32


def test_finfo_accepts_arrays():
    assert dtypes.finfo(np.ones(2, np.float16)).bits == 16


def test_finfo_refuses_integers():
    with pytest.raises(ValueError, match=r"(?s)numpy.finfo: not a floating dtype.*numpy\.iinfo"):
        dtypes.finfo(np.int32)


def test_iinfo_knows_sub_byte_integers():
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint2").max) == (-8, 3)


def test_iinfo_refuses_floats():
    with pytest.raises(ValueError, match=r"(?s)numpy.iinfo: not an integer dtype.*numpy\.finfo"):
        dtypes.iinfo(dtypes.bfloat16)


def test_can_cast_is_safe_by_default():
    assert dtype_queries.can_cast("bfloat16", "float32")
    assert not dtype_queries.can_cast("float32", "bfloat16")


@given(standard_dtypes)
def test_bit_width_agrees_with_the_limits(dtype):
    if dtype_queries.isdtype(dtype, "integral"):
        assert dtypes.bit_width(dtype) == dtypes.iinfo(dtype).bits
    elif dtype_queries.isdtype(dtype, "real floating"):
        assert dtypes.bit_width(dtype) == dtypes.finfo(dtype).bits
    else:
        assert dtypes.bit_width(dtype) == 8 * dtype.itemsize


@pytest.mark.parametrize("dtype", [dtypes.float0, KeyDType()])
def test_bit_width_of_opaque_dtypes_is_refused(dtype):
    with pytest.raises(ValueError, match="have no width"):
        dtypes.bit_width(dtype)


@pytest.mark.parametrize(
    ("dtype", "inexact", "complex_"),
    [
        ("bool", "float32", "complex64"),
        ("int4", "float32", "complex64"),
        ("uint16", "float32", "complex64"),
        ("int64", "float64", "complex128"),
        ("bfloat16", "bfloat16", "complex64"),
        ("float8_e5m2", "float8_e5m2", "complex64"),
        ("float64", "float64", "complex128"),
        ("complex64", "complex64", "complex64"),
    ],
)
def test_conversion_to_inexact_and_complex_dtypes(dtype, inexact, complex_):
    with config.enable_x64(True):
        assert dtypes.to_inexact_dtype(dtype) == inexact
        assert dtypes.to_complex_dtype(dtype) == complex_


def test_conversion_to_inexact_has_no_64_bits_without_x64():
    assert dtypes.to_inexact_dtype("int64") == np.float32
    assert dtypes.to_complex_dtype("int64") == np.complex64


def test_conversion_passes_extended_dtypes():
    key = KeyDType()
    assert dtypes.to_inexact_dtype(key) == dtypes.to_numeric_dtype(key) == key


def test_conversion_to_numeric_changes_booleans_only():
    assert dtypes.to_numeric_dtype(np.bool_) == np.int32
    assert dtypes.to_numeric_dtype(np.uint8) == np.uint8


def test_real_and_complex_partners_are_inverse():
    for real in (dtypes.float32, dtypes.float64):
        assert dtypes.real_dtype_of(dtypes.complex_dtype_of(real)) == real


def test_complex_dtype_of_a_dtype_without_partner_is_refused():
    with pytest.raises(TypeError, match=r"(?s)no complex dtype.*float16.*float32 or float64"):
        dtypes.complex_dtype_of(dtypes.float16)


@pytest.mark.parametrize("x64", [False, True])
def test_defaults_follow_the_x64_switch(x64):
    with config.enable_x64(x64):
        defaults = [
            dtypes.default_int_dtype(),
            dtypes.default_uint_dtype(),
            dtypes.default_float_dtype(),
            dtypes.default_complex_dtype(),
        ]
    wide = [np.int64, np.uint64, np.float64, np.complex128]
    assert defaults == (wide if x64 else [np.int32, np.uint32, np.float32, np.complex64])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1, "int64"),
        (1.0, "float64"),
        (float, "float64"),
        (np.float32(1), "float32"),
        (np.arange(2, dtype=np.int8), "int8"),
        ("bfloat16", "bfloat16"),
        (Operand(KeyDType()), KeyDType()),
    ],
)
def test_dtype_of_values_and_names(value, wanted):
    assert dtypes.dtype(value) == wanted


def test_dtype_canonicalizes_on_request():
    assert dtypes.dtype(1.0, canonicalize=True) == np.float32


@pytest.mark.parametrize(
    ("value", "error"), [(None, ValueError), ([1, 2], TypeError), (object, TypeError)]
)
def test_dtype_refuses_what_has_none(value, error):
    with pytest.raises(error, match=r"^dtype: "):
        dtypes.dtype(value)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(True, bool), (1, int), (np.uint8, int), ("bfloat16", float), (np.ones(2) * 1j, complex)],
)
def test_scalar_type_of_values_and_dtypes(value, wanted):
    assert dtypes.scalar_type_of(value) is wanted


@pytest.mark.parametrize(
    ("value", "python", "weak"),
    [
        (True, True, False),
        (1, True, True),
        (1j, True, True),
        (np.float64(1), False, False),
        (np.bool_(1), False, False),
        (np.ones(2), False, False),
        (Operand(dtypes.float32, weak_type=True), False, True),
    ],
)
def test_weak_are_python_numbers_and_weak_arrays(value, python, weak):
    assert dtypes.is_python_scalar(value) is python
    assert dtypes.is_weakly_typed(value) is weak


def test_weak_type_is_also_read_from_the_aval():
    class Traced:
        aval = Operand(dtypes.float32, weak_type=True)

    assert dtypes.is_weakly_typed(Traced())


@pytest.mark.parametrize("name", dtypes.SCALAR_TYPES)
def test_scalar_type_stands_for_its_dtype(name):
    scalar_type = dtypes.SCALAR_TYPES[name]
    dtype = getattr(dtypes, name)
    assert np.dtype(scalar_type) == scalar_type.dtype == dtype
    assert scalar_type == dtype
    assert dtype == scalar_type
    assert scalar_type == dtype.type
    assert hash(scalar_type) == hash(dtype.type)


def test_scalar_type_differs_from_other_types():
    float32 = dtypes.SCALAR_TYPES["float32"]
    others = [np.float64, np.dtype(np.int32), dtypes.SCALAR_TYPES["float16"], float, "float32"]
    assert not any(float32 == other for other in others)


def test_scalar_type_prints_its_public_name():
    assert repr(dtypes.SCALAR_TYPES["float32"]) == "minijax.numpy.float32"


def test_scalar_type_instances_are_those_of_numpy():
    float32 = dtypes.SCALAR_TYPES["float32"]
    assert isinstance(np.float32(1), float32)
    assert not isinstance(1.0, float32)


def test_scalar_type_makes_arrays_through_its_hook(monkeypatch):
    monkeypatch.setattr(dtypes.ScalarType, "make_array", np.asarray, raising=False)
    assert dtypes.SCALAR_TYPES["float16"](3).dtype == np.float16


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("function", [jnp.max, jnp.linalg.norm, nn.logsumexp, nn.log_softmax])
def test_wide_arrays_outlive_the_setting_that_made_them(function: Callable[..., Any]) -> None:
    with config.enable_x64(True):
        x = jnp.arange(4.0)
    gradient = jax.grad(lambda x: jnp.ravel(function(x))[0])(x)
    expected = jax.grad(lambda x: jnp.ravel(function(x))[0])(x.astype(np.float32))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
