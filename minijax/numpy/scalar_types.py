"""Names of element types: those of arrays, NumPy's aliases of them, and the abstract kinds."""

from __future__ import annotations

from numpy import (
    character,
    complexfloating,
    dtype,
    flexible,
    floating,
    generic,
    inexact,
    integer,
    number,
    object_,
    signedinteger,
    unsignedinteger,
)
from numpy.exceptions import ComplexWarning

from minijax.core.dtype_queries import can_cast, isdtype
from minijax.core.dtypes import (
    SCALAR_TYPES,
    finfo,
    iinfo,
    issubdtype,
    promote_types,
    result_type,
)

bool_ = SCALAR_TYPES["bool_"]
int2 = SCALAR_TYPES["int2"]
int4 = SCALAR_TYPES["int4"]
int8 = SCALAR_TYPES["int8"]
int16 = SCALAR_TYPES["int16"]
int32 = SCALAR_TYPES["int32"]
int64 = SCALAR_TYPES["int64"]
uint2 = SCALAR_TYPES["uint2"]
uint4 = SCALAR_TYPES["uint4"]
uint8 = SCALAR_TYPES["uint8"]
uint16 = SCALAR_TYPES["uint16"]
uint32 = SCALAR_TYPES["uint32"]
uint64 = SCALAR_TYPES["uint64"]
bfloat16 = SCALAR_TYPES["bfloat16"]
float16 = SCALAR_TYPES["float16"]
float32 = SCALAR_TYPES["float32"]
float64 = SCALAR_TYPES["float64"]
float4_e2m1fn = SCALAR_TYPES["float4_e2m1fn"]
float8_e3m4 = SCALAR_TYPES["float8_e3m4"]
float8_e4m3 = SCALAR_TYPES["float8_e4m3"]
float8_e4m3b11fnuz = SCALAR_TYPES["float8_e4m3b11fnuz"]
float8_e4m3fn = SCALAR_TYPES["float8_e4m3fn"]
float8_e4m3fnuz = SCALAR_TYPES["float8_e4m3fnuz"]
float8_e5m2 = SCALAR_TYPES["float8_e5m2"]
float8_e5m2fnuz = SCALAR_TYPES["float8_e5m2fnuz"]
float8_e8m0fnu = SCALAR_TYPES["float8_e8m0fnu"]
complex64 = SCALAR_TYPES["complex64"]
complex128 = SCALAR_TYPES["complex128"]

bool = bool_
single = float32
double = float64
csingle = complex64
cdouble = complex128

# NumPy's defaults; without x64 they become types of 32 bits where arrays are made.
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128

__all__ = [
    "ComplexWarning",
    "bfloat16",
    "bool",
    "bool_",
    "can_cast",
    "cdouble",
    "character",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "finfo",
    "flexible",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "isdtype",
    "issubdtype",
    "number",
    "object_",
    "promote_types",
    "result_type",
    "signedinteger",
    "single",
    "uint",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]
