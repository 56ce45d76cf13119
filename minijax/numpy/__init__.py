"""Functions of arrays as NumPy has them.  Mirrors jax.numpy.

Importing this gives arrays their operators and methods.
"""

# Names are imported "as themselves", which exports them; isort would write a statement for each.
# ruff: noqa: I001

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from minijax.numpy import operators as operators, standard as standard
from minijax.numpy.accumulations import (
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
)
from minijax.numpy.arithmetic import (
    abs as abs,
    absolute as absolute,
    cbrt as cbrt,
    clip as clip,
    divide as divide,
    divmod as divmod,
    fabs as fabs,
    float_power as float_power,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    heaviside as heaviside,
    hypot as hypot,
    mod as mod,
    positive as positive,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    remainder as remainder,
    sign as sign,
    sqrt as sqrt,
    square as square,
    true_divide as true_divide,
)
from minijax.numpy.bits import packbits as packbits, unpackbits as unpackbits
from minijax.numpy.calculus import (
    convolve as convolve,
    correlate as correlate,
    cross as cross,
    diff as diff,
    ediff1d as ediff1d,
    gradient as gradient,
    interp as interp,
    trapezoid as trapezoid,
    unwrap as unwrap,
)
from minijax.numpy.constants import (
    e as e,
    euler_gamma as euler_gamma,
    inf as inf,
    nan as nan,
    newaxis as newaxis,
    pi as pi,
)
from minijax.numpy.contraction import (
    dot as dot,
    einsum as einsum,
    einsum_path as einsum_path,
    inner as inner,
    kron as kron,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
)
from minijax.numpy.coordinates import (
    ix_ as ix_,
    ravel_multi_index as ravel_multi_index,
    unravel_index as unravel_index,
)
from minijax.numpy.covariance import corrcoef as corrcoef, cov as cov
from minijax.numpy.creation import (
    array as array,
    asarray as asarray,
    astype as astype,
    copy as copy,
    empty as empty,
    empty_like as empty_like,
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
    full as full,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from minijax.numpy.description import (
    array_repr as array_repr,
    array_str as array_str,
    get_printoptions as get_printoptions,
    index_exp as index_exp,
    iterable as iterable,
    load as load,
    ndarray as ndarray,
    ndim as ndim,
    printoptions as printoptions,
    s_ as s_,
    save as save,
    savez as savez,
    set_printoptions as set_printoptions,
    shape as shape,
    size as size,
)
from minijax.numpy.divisors import gcd as gcd, lcm as lcm
from minijax.numpy.elementary import (
    acos as acos,
    acosh as acosh,
    angle as angle,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    around as around,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    ceil as ceil,
    conj as conj,
    conjugate as conjugate,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    i0 as i0,
    imag as imag,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    rint as rint,
    round as round,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
)
from minijax.numpy.floats import (
    copysign as copysign,
    frexp as frexp,
    ldexp as ldexp,
    modf as modf,
    nan_to_num as nan_to_num,
    nextafter as nextafter,
    signbit as signbit,
    spacing as spacing,
)
from minijax.numpy.functional import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    piecewise as piecewise,
    vectorize as vectorize,
)
from minijax.numpy.grids import c_ as c_, mgrid as mgrid, ogrid as ogrid, r_ as r_
from minijax.numpy.histograms import (
    bincount as bincount,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
)
from minijax.numpy.joining import (
    append as append,
    array_split as array_split,
    block as block,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    delete as delete,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    insert as insert,
    split as split,
    stack as stack,
    trim_zeros as trim_zeros,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from minijax.numpy.logic import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_right_shift as bitwise_right_shift,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    invert as invert,
    isclose as isclose,
    iscomplex as iscomplex,
    iscomplexobj as iscomplexobj,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    isreal as isreal,
    isrealobj as isrealobj,
    isscalar as isscalar,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    logical_not as logical_not,
    not_equal as not_equal,
    right_shift as right_shift,
)
from minijax.numpy.matrices import (
    diag as diag,
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    diagflat as diagflat,
    diagonal as diagonal,
    eye as eye,
    identity as identity,
    indices as indices,
    mask_indices as mask_indices,
    meshgrid as meshgrid,
    trace as trace,
    tri as tri,
    tril as tril,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    triu as triu,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
    vander as vander,
)
from minijax.numpy.ordering import (
    argpartition as argpartition,
    argsort as argsort,
    digitize as digitize,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    sort_complex as sort_complex,
)
from minijax.numpy.padding import pad as pad
from minijax.numpy.polynomials import (
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyint as polyint,
    polymul as polymul,
    polysub as polysub,
    polyval as polyval,
)
from minijax.numpy.ranges import (
    arange as arange,
    fromfunction as fromfunction,
    geomspace as geomspace,
    linspace as linspace,
    logspace as logspace,
)
from minijax.numpy.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    ptp as ptp,
    std as std,
    sum as sum,
    var as var,
)
from minijax.numpy.scalar_types import (
    ComplexWarning as ComplexWarning,
    bfloat16 as bfloat16,
    bool as bool,
    bool_ as bool_,
    can_cast as can_cast,
    cdouble as cdouble,
    character as character,
    complex128 as complex128,
    complex64 as complex64,
    complex_ as complex_,
    complexfloating as complexfloating,
    csingle as csingle,
    double as double,
    dtype as dtype,
    finfo as finfo,
    flexible as flexible,
    float16 as float16,
    float32 as float32,
    float4_e2m1fn as float4_e2m1fn,
    float64 as float64,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float_ as float_,
    floating as floating,
    generic as generic,
    iinfo as iinfo,
    inexact as inexact,
    int16 as int16,
    int2 as int2,
    int32 as int32,
    int4 as int4,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    integer as integer,
    isdtype as isdtype,
    issubdtype as issubdtype,
    number as number,
    object_ as object_,
    promote_types as promote_types,
    result_type as result_type,
    signedinteger as signedinteger,
    single as single,
    uint as uint,
    uint16 as uint16,
    uint2 as uint2,
    uint32 as uint32,
    uint4 as uint4,
    uint64 as uint64,
    uint8 as uint8,
    unsignedinteger as unsignedinteger,
)
from minijax.numpy.selection import (
    argwhere as argwhere,
    choose as choose,
    compress as compress,
    extract as extract,
    fill_diagonal as fill_diagonal,
    flatnonzero as flatnonzero,
    nonzero as nonzero,
    place as place,
    put as put,
    put_along_axis as put_along_axis,
    select as select,
    take as take,
    take_along_axis as take_along_axis,
    where as where,
)
from minijax.numpy.sets import (
    intersect1d as intersect1d,
    isin as isin,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from minijax.numpy.shaping import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    repeat as repeat,
    reshape as reshape,
    resize as resize,
    roll as roll,
    rollaxis as rollaxis,
    rot90 as rot90,
    squeeze as squeeze,
    swapaxes as swapaxes,
    tile as tile,
    transpose as transpose,
)
from minijax.numpy.statistics import (
    average as average,
    median as median,
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmedian as nanmedian,
    nanmin as nanmin,
    nanpercentile as nanpercentile,
    nanprod as nanprod,
    nanquantile as nanquantile,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
    percentile as percentile,
    quantile as quantile,
)
from minijax.numpy.ufuncs import (
    add as add,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    frompyfunc as frompyfunc,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    subtract as subtract,
    ufunc as ufunc,
)
from minijax.numpy.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    kaiser as kaiser,
)

if TYPE_CHECKING:
    from minijax.numpy import fft as fft, linalg as linalg
    from minijax.numpy.polynomial_roots import poly as poly, polyfit as polyfit, roots as roots

_MODULES = ("fft", "linalg")
# Functions that need linear algebra.
_OF_ROOTS = ("poly", "polyfit", "roots")
# Names of the array API standard.
_OF_THE_STANDARD = {
    "__array_api_version__": "VERSION",
    "__array_namespace_info__": "__array_namespace_info__",
}


def __getattr__(name: str) -> Any:
    """Loads the parts that many programs do without when they are first named."""
    if name in _MODULES:
        return importlib.import_module(f"minijax.numpy.{name}")
    if name in _OF_ROOTS:
        found = getattr(importlib.import_module("minijax.numpy.polynomial_roots"), name)
        globals()[name] = found
        return found
    if name in _OF_THE_STANDARD:
        return getattr(standard, _OF_THE_STANDARD[name])
    raise AttributeError(f"module 'minijax.numpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    shown = {
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, type(importlib))
    }
    return sorted((shown - {"Any", "TYPE_CHECKING", "annotations"}) | {*_MODULES, *_OF_ROOTS})
