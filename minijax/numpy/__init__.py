"""Functions of arrays as NumPy has them.  Mirrors jax.numpy.

Importing this gives arrays their operators and methods.
"""

from __future__ import annotations

from minijax.numpy import operators  # noqa: F401  importing it fills the operators
from minijax.numpy.arithmetic import (
    abs as abs,
)
from minijax.numpy.arithmetic import (
    absolute as absolute,
)
from minijax.numpy.arithmetic import (
    add as add,
)
from minijax.numpy.arithmetic import (
    cbrt as cbrt,
)
from minijax.numpy.arithmetic import (
    clip as clip,
)
from minijax.numpy.arithmetic import (
    divide as divide,
)
from minijax.numpy.arithmetic import (
    divmod as divmod,
)
from minijax.numpy.arithmetic import (
    fabs as fabs,
)
from minijax.numpy.arithmetic import (
    float_power as float_power,
)
from minijax.numpy.arithmetic import (
    floor_divide as floor_divide,
)
from minijax.numpy.arithmetic import (
    fmax as fmax,
)
from minijax.numpy.arithmetic import (
    fmin as fmin,
)
from minijax.numpy.arithmetic import (
    fmod as fmod,
)
from minijax.numpy.arithmetic import (
    heaviside as heaviside,
)
from minijax.numpy.arithmetic import (
    hypot as hypot,
)
from minijax.numpy.arithmetic import (
    maximum as maximum,
)
from minijax.numpy.arithmetic import (
    minimum as minimum,
)
from minijax.numpy.arithmetic import (
    mod as mod,
)
from minijax.numpy.arithmetic import (
    multiply as multiply,
)
from minijax.numpy.arithmetic import (
    negative as negative,
)
from minijax.numpy.arithmetic import (
    positive as positive,
)
from minijax.numpy.arithmetic import (
    pow as pow,
)
from minijax.numpy.arithmetic import (
    power as power,
)
from minijax.numpy.arithmetic import (
    reciprocal as reciprocal,
)
from minijax.numpy.arithmetic import (
    remainder as remainder,
)
from minijax.numpy.arithmetic import (
    sign as sign,
)
from minijax.numpy.arithmetic import (
    sqrt as sqrt,
)
from minijax.numpy.arithmetic import (
    square as square,
)
from minijax.numpy.arithmetic import (
    subtract as subtract,
)
from minijax.numpy.arithmetic import (
    true_divide as true_divide,
)
from minijax.numpy.constants import (
    e as e,
)
from minijax.numpy.constants import (
    euler_gamma as euler_gamma,
)
from minijax.numpy.constants import (
    inf as inf,
)
from minijax.numpy.constants import (
    nan as nan,
)
from minijax.numpy.constants import (
    newaxis as newaxis,
)
from minijax.numpy.constants import (
    pi as pi,
)
from minijax.numpy.contraction import (
    dot as dot,
)
from minijax.numpy.contraction import (
    einsum as einsum,
)
from minijax.numpy.contraction import (
    einsum_path as einsum_path,
)
from minijax.numpy.contraction import (
    inner as inner,
)
from minijax.numpy.contraction import (
    kron as kron,
)
from minijax.numpy.contraction import (
    matmul as matmul,
)
from minijax.numpy.contraction import (
    matvec as matvec,
)
from minijax.numpy.contraction import (
    outer as outer,
)
from minijax.numpy.contraction import (
    tensordot as tensordot,
)
from minijax.numpy.contraction import (
    vdot as vdot,
)
from minijax.numpy.contraction import (
    vecdot as vecdot,
)
from minijax.numpy.contraction import (
    vecmat as vecmat,
)
from minijax.numpy.creation import (
    array as array,
)
from minijax.numpy.creation import (
    asarray as asarray,
)
from minijax.numpy.creation import (
    astype as astype,
)
from minijax.numpy.creation import (
    copy as copy,
)
from minijax.numpy.creation import (
    empty as empty,
)
from minijax.numpy.creation import (
    empty_like as empty_like,
)
from minijax.numpy.creation import (
    from_dlpack as from_dlpack,
)
from minijax.numpy.creation import (
    frombuffer as frombuffer,
)
from minijax.numpy.creation import (
    fromfile as fromfile,
)
from minijax.numpy.creation import (
    fromiter as fromiter,
)
from minijax.numpy.creation import (
    fromstring as fromstring,
)
from minijax.numpy.creation import (
    full as full,
)
from minijax.numpy.creation import (
    full_like as full_like,
)
from minijax.numpy.creation import (
    ones as ones,
)
from minijax.numpy.creation import (
    ones_like as ones_like,
)
from minijax.numpy.creation import (
    zeros as zeros,
)
from minijax.numpy.creation import (
    zeros_like as zeros_like,
)
from minijax.numpy.description import (
    array_repr as array_repr,
)
from minijax.numpy.description import (
    array_str as array_str,
)
from minijax.numpy.description import (
    get_printoptions as get_printoptions,
)
from minijax.numpy.description import (
    index_exp as index_exp,
)
from minijax.numpy.description import (
    iterable as iterable,
)
from minijax.numpy.description import (
    load as load,
)
from minijax.numpy.description import (
    ndarray as ndarray,
)
from minijax.numpy.description import (
    ndim as ndim,
)
from minijax.numpy.description import (
    printoptions as printoptions,
)
from minijax.numpy.description import (
    s_ as s_,
)
from minijax.numpy.description import (
    save as save,
)
from minijax.numpy.description import (
    savez as savez,
)
from minijax.numpy.description import (
    set_printoptions as set_printoptions,
)
from minijax.numpy.description import (
    shape as shape,
)
from minijax.numpy.description import (
    size as size,
)
from minijax.numpy.elementary import (
    acos as acos,
)
from minijax.numpy.elementary import (
    acosh as acosh,
)
from minijax.numpy.elementary import (
    angle as angle,
)
from minijax.numpy.elementary import (
    arccos as arccos,
)
from minijax.numpy.elementary import (
    arccosh as arccosh,
)
from minijax.numpy.elementary import (
    arcsin as arcsin,
)
from minijax.numpy.elementary import (
    arcsinh as arcsinh,
)
from minijax.numpy.elementary import (
    arctan as arctan,
)
from minijax.numpy.elementary import (
    arctan2 as arctan2,
)
from minijax.numpy.elementary import (
    arctanh as arctanh,
)
from minijax.numpy.elementary import (
    around as around,
)
from minijax.numpy.elementary import (
    asin as asin,
)
from minijax.numpy.elementary import (
    asinh as asinh,
)
from minijax.numpy.elementary import (
    atan as atan,
)
from minijax.numpy.elementary import (
    atan2 as atan2,
)
from minijax.numpy.elementary import (
    atanh as atanh,
)
from minijax.numpy.elementary import (
    ceil as ceil,
)
from minijax.numpy.elementary import (
    conj as conj,
)
from minijax.numpy.elementary import (
    conjugate as conjugate,
)
from minijax.numpy.elementary import (
    cos as cos,
)
from minijax.numpy.elementary import (
    cosh as cosh,
)
from minijax.numpy.elementary import (
    deg2rad as deg2rad,
)
from minijax.numpy.elementary import (
    degrees as degrees,
)
from minijax.numpy.elementary import (
    exp as exp,
)
from minijax.numpy.elementary import (
    exp2 as exp2,
)
from minijax.numpy.elementary import (
    expm1 as expm1,
)
from minijax.numpy.elementary import (
    floor as floor,
)
from minijax.numpy.elementary import (
    i0 as i0,
)
from minijax.numpy.elementary import (
    imag as imag,
)
from minijax.numpy.elementary import (
    log as log,
)
from minijax.numpy.elementary import (
    log1p as log1p,
)
from minijax.numpy.elementary import (
    log2 as log2,
)
from minijax.numpy.elementary import (
    log10 as log10,
)
from minijax.numpy.elementary import (
    logaddexp as logaddexp,
)
from minijax.numpy.elementary import (
    logaddexp2 as logaddexp2,
)
from minijax.numpy.elementary import (
    rad2deg as rad2deg,
)
from minijax.numpy.elementary import (
    radians as radians,
)
from minijax.numpy.elementary import (
    real as real,
)
from minijax.numpy.elementary import (
    rint as rint,
)
from minijax.numpy.elementary import (
    round as round,
)
from minijax.numpy.elementary import (
    sin as sin,
)
from minijax.numpy.elementary import (
    sinc as sinc,
)
from minijax.numpy.elementary import (
    sinh as sinh,
)
from minijax.numpy.elementary import (
    tan as tan,
)
from minijax.numpy.elementary import (
    tanh as tanh,
)
from minijax.numpy.elementary import (
    trunc as trunc,
)
from minijax.numpy.floats import (
    copysign as copysign,
)
from minijax.numpy.floats import (
    frexp as frexp,
)
from minijax.numpy.floats import (
    ldexp as ldexp,
)
from minijax.numpy.floats import (
    modf as modf,
)
from minijax.numpy.floats import (
    nan_to_num as nan_to_num,
)
from minijax.numpy.floats import (
    nextafter as nextafter,
)
from minijax.numpy.floats import (
    signbit as signbit,
)
from minijax.numpy.floats import (
    spacing as spacing,
)
from minijax.numpy.joining import (
    append as append,
)
from minijax.numpy.joining import (
    array_split as array_split,
)
from minijax.numpy.joining import (
    block as block,
)
from minijax.numpy.joining import (
    column_stack as column_stack,
)
from minijax.numpy.joining import (
    concat as concat,
)
from minijax.numpy.joining import (
    concatenate as concatenate,
)
from minijax.numpy.joining import (
    dsplit as dsplit,
)
from minijax.numpy.joining import (
    dstack as dstack,
)
from minijax.numpy.joining import (
    hsplit as hsplit,
)
from minijax.numpy.joining import (
    hstack as hstack,
)
from minijax.numpy.joining import (
    pad as pad,
)
from minijax.numpy.joining import (
    split as split,
)
from minijax.numpy.joining import (
    stack as stack,
)
from minijax.numpy.joining import (
    unstack as unstack,
)
from minijax.numpy.joining import (
    vsplit as vsplit,
)
from minijax.numpy.joining import (
    vstack as vstack,
)
from minijax.numpy.logic import (
    allclose as allclose,
)
from minijax.numpy.logic import (
    array_equal as array_equal,
)
from minijax.numpy.logic import (
    array_equiv as array_equiv,
)
from minijax.numpy.logic import (
    bitwise_and as bitwise_and,
)
from minijax.numpy.logic import (
    bitwise_count as bitwise_count,
)
from minijax.numpy.logic import (
    bitwise_invert as bitwise_invert,
)
from minijax.numpy.logic import (
    bitwise_left_shift as bitwise_left_shift,
)
from minijax.numpy.logic import (
    bitwise_not as bitwise_not,
)
from minijax.numpy.logic import (
    bitwise_or as bitwise_or,
)
from minijax.numpy.logic import (
    bitwise_right_shift as bitwise_right_shift,
)
from minijax.numpy.logic import (
    bitwise_xor as bitwise_xor,
)
from minijax.numpy.logic import (
    equal as equal,
)
from minijax.numpy.logic import (
    greater as greater,
)
from minijax.numpy.logic import (
    greater_equal as greater_equal,
)
from minijax.numpy.logic import (
    invert as invert,
)
from minijax.numpy.logic import (
    isclose as isclose,
)
from minijax.numpy.logic import (
    iscomplex as iscomplex,
)
from minijax.numpy.logic import (
    iscomplexobj as iscomplexobj,
)
from minijax.numpy.logic import (
    isfinite as isfinite,
)
from minijax.numpy.logic import (
    isinf as isinf,
)
from minijax.numpy.logic import (
    isnan as isnan,
)
from minijax.numpy.logic import (
    isneginf as isneginf,
)
from minijax.numpy.logic import (
    isposinf as isposinf,
)
from minijax.numpy.logic import (
    isreal as isreal,
)
from minijax.numpy.logic import (
    isrealobj as isrealobj,
)
from minijax.numpy.logic import (
    isscalar as isscalar,
)
from minijax.numpy.logic import (
    left_shift as left_shift,
)
from minijax.numpy.logic import (
    less as less,
)
from minijax.numpy.logic import (
    less_equal as less_equal,
)
from minijax.numpy.logic import (
    logical_and as logical_and,
)
from minijax.numpy.logic import (
    logical_not as logical_not,
)
from minijax.numpy.logic import (
    logical_or as logical_or,
)
from minijax.numpy.logic import (
    logical_xor as logical_xor,
)
from minijax.numpy.logic import (
    not_equal as not_equal,
)
from minijax.numpy.logic import (
    right_shift as right_shift,
)
from minijax.numpy.matrices import (
    diag as diag,
)
from minijax.numpy.matrices import (
    diag_indices as diag_indices,
)
from minijax.numpy.matrices import (
    diag_indices_from as diag_indices_from,
)
from minijax.numpy.matrices import (
    diagflat as diagflat,
)
from minijax.numpy.matrices import (
    diagonal as diagonal,
)
from minijax.numpy.matrices import (
    eye as eye,
)
from minijax.numpy.matrices import (
    identity as identity,
)
from minijax.numpy.matrices import (
    indices as indices,
)
from minijax.numpy.matrices import (
    mask_indices as mask_indices,
)
from minijax.numpy.matrices import (
    meshgrid as meshgrid,
)
from minijax.numpy.matrices import (
    trace as trace,
)
from minijax.numpy.matrices import (
    tri as tri,
)
from minijax.numpy.matrices import (
    tril as tril,
)
from minijax.numpy.matrices import (
    tril_indices as tril_indices,
)
from minijax.numpy.matrices import (
    tril_indices_from as tril_indices_from,
)
from minijax.numpy.matrices import (
    triu as triu,
)
from minijax.numpy.matrices import (
    triu_indices as triu_indices,
)
from minijax.numpy.matrices import (
    triu_indices_from as triu_indices_from,
)
from minijax.numpy.matrices import (
    vander as vander,
)
from minijax.numpy.ranges import (
    arange as arange,
)
from minijax.numpy.ranges import (
    fromfunction as fromfunction,
)
from minijax.numpy.ranges import (
    geomspace as geomspace,
)
from minijax.numpy.ranges import (
    linspace as linspace,
)
from minijax.numpy.ranges import (
    logspace as logspace,
)
from minijax.numpy.reductions import (
    all as all,
)
from minijax.numpy.reductions import (
    amax as amax,
)
from minijax.numpy.reductions import (
    amin as amin,
)
from minijax.numpy.reductions import (
    any as any,
)
from minijax.numpy.reductions import (
    argmax as argmax,
)
from minijax.numpy.reductions import (
    argmin as argmin,
)
from minijax.numpy.reductions import (
    count_nonzero as count_nonzero,
)
from minijax.numpy.reductions import (
    cumprod as cumprod,
)
from minijax.numpy.reductions import (
    cumsum as cumsum,
)
from minijax.numpy.reductions import (
    cumulative_prod as cumulative_prod,
)
from minijax.numpy.reductions import (
    cumulative_sum as cumulative_sum,
)
from minijax.numpy.reductions import (
    max as max,
)
from minijax.numpy.reductions import (
    mean as mean,
)
from minijax.numpy.reductions import (
    min as min,
)
from minijax.numpy.reductions import (
    prod as prod,
)
from minijax.numpy.reductions import (
    ptp as ptp,
)
from minijax.numpy.reductions import (
    std as std,
)
from minijax.numpy.reductions import (
    sum as sum,
)
from minijax.numpy.reductions import (
    var as var,
)
from minijax.numpy.scalar_types import (
    ComplexWarning as ComplexWarning,
)
from minijax.numpy.scalar_types import (
    bfloat16 as bfloat16,
)
from minijax.numpy.scalar_types import (
    bool as bool,
)
from minijax.numpy.scalar_types import (
    bool_ as bool_,
)
from minijax.numpy.scalar_types import (
    can_cast as can_cast,
)
from minijax.numpy.scalar_types import (
    cdouble as cdouble,
)
from minijax.numpy.scalar_types import (
    character as character,
)
from minijax.numpy.scalar_types import (
    complex64 as complex64,
)
from minijax.numpy.scalar_types import (
    complex128 as complex128,
)
from minijax.numpy.scalar_types import (
    complex_ as complex_,
)
from minijax.numpy.scalar_types import (
    complexfloating as complexfloating,
)
from minijax.numpy.scalar_types import (
    csingle as csingle,
)
from minijax.numpy.scalar_types import (
    double as double,
)
from minijax.numpy.scalar_types import (
    dtype as dtype,
)
from minijax.numpy.scalar_types import (
    finfo as finfo,
)
from minijax.numpy.scalar_types import (
    flexible as flexible,
)
from minijax.numpy.scalar_types import (
    float4_e2m1fn as float4_e2m1fn,
)
from minijax.numpy.scalar_types import (
    float8_e3m4 as float8_e3m4,
)
from minijax.numpy.scalar_types import (
    float8_e4m3 as float8_e4m3,
)
from minijax.numpy.scalar_types import (
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
)
from minijax.numpy.scalar_types import (
    float8_e4m3fn as float8_e4m3fn,
)
from minijax.numpy.scalar_types import (
    float8_e4m3fnuz as float8_e4m3fnuz,
)
from minijax.numpy.scalar_types import (
    float8_e5m2 as float8_e5m2,
)
from minijax.numpy.scalar_types import (
    float8_e5m2fnuz as float8_e5m2fnuz,
)
from minijax.numpy.scalar_types import (
    float8_e8m0fnu as float8_e8m0fnu,
)
from minijax.numpy.scalar_types import (
    float16 as float16,
)
from minijax.numpy.scalar_types import (
    float32 as float32,
)
from minijax.numpy.scalar_types import (
    float64 as float64,
)
from minijax.numpy.scalar_types import (
    float_ as float_,
)
from minijax.numpy.scalar_types import (
    floating as floating,
)
from minijax.numpy.scalar_types import (
    generic as generic,
)
from minijax.numpy.scalar_types import (
    iinfo as iinfo,
)
from minijax.numpy.scalar_types import (
    inexact as inexact,
)
from minijax.numpy.scalar_types import (
    int2 as int2,
)
from minijax.numpy.scalar_types import (
    int4 as int4,
)
from minijax.numpy.scalar_types import (
    int8 as int8,
)
from minijax.numpy.scalar_types import (
    int16 as int16,
)
from minijax.numpy.scalar_types import (
    int32 as int32,
)
from minijax.numpy.scalar_types import (
    int64 as int64,
)
from minijax.numpy.scalar_types import (
    int_ as int_,
)
from minijax.numpy.scalar_types import (
    integer as integer,
)
from minijax.numpy.scalar_types import (
    isdtype as isdtype,
)
from minijax.numpy.scalar_types import (
    issubdtype as issubdtype,
)
from minijax.numpy.scalar_types import (
    number as number,
)
from minijax.numpy.scalar_types import (
    object_ as object_,
)
from minijax.numpy.scalar_types import (
    promote_types as promote_types,
)
from minijax.numpy.scalar_types import (
    result_type as result_type,
)
from minijax.numpy.scalar_types import (
    signedinteger as signedinteger,
)
from minijax.numpy.scalar_types import (
    single as single,
)
from minijax.numpy.scalar_types import (
    uint as uint,
)
from minijax.numpy.scalar_types import (
    uint2 as uint2,
)
from minijax.numpy.scalar_types import (
    uint4 as uint4,
)
from minijax.numpy.scalar_types import (
    uint8 as uint8,
)
from minijax.numpy.scalar_types import (
    uint16 as uint16,
)
from minijax.numpy.scalar_types import (
    uint32 as uint32,
)
from minijax.numpy.scalar_types import (
    uint64 as uint64,
)
from minijax.numpy.scalar_types import (
    unsignedinteger as unsignedinteger,
)
from minijax.numpy.selection import (
    argpartition as argpartition,
)
from minijax.numpy.selection import (
    argsort as argsort,
)
from minijax.numpy.selection import (
    argwhere as argwhere,
)
from minijax.numpy.selection import (
    choose as choose,
)
from minijax.numpy.selection import (
    compress as compress,
)
from minijax.numpy.selection import (
    digitize as digitize,
)
from minijax.numpy.selection import (
    extract as extract,
)
from minijax.numpy.selection import (
    flatnonzero as flatnonzero,
)
from minijax.numpy.selection import (
    lexsort as lexsort,
)
from minijax.numpy.selection import (
    nonzero as nonzero,
)
from minijax.numpy.selection import (
    partition as partition,
)
from minijax.numpy.selection import (
    put_along_axis as put_along_axis,
)
from minijax.numpy.selection import (
    searchsorted as searchsorted,
)
from minijax.numpy.selection import (
    select as select,
)
from minijax.numpy.selection import (
    sort as sort,
)
from minijax.numpy.selection import (
    take as take,
)
from minijax.numpy.selection import (
    take_along_axis as take_along_axis,
)
from minijax.numpy.selection import (
    where as where,
)
from minijax.numpy.shaping import (
    atleast_1d as atleast_1d,
)
from minijax.numpy.shaping import (
    atleast_2d as atleast_2d,
)
from minijax.numpy.shaping import (
    atleast_3d as atleast_3d,
)
from minijax.numpy.shaping import (
    broadcast_arrays as broadcast_arrays,
)
from minijax.numpy.shaping import (
    broadcast_shapes as broadcast_shapes,
)
from minijax.numpy.shaping import (
    broadcast_to as broadcast_to,
)
from minijax.numpy.shaping import (
    expand_dims as expand_dims,
)
from minijax.numpy.shaping import (
    flip as flip,
)
from minijax.numpy.shaping import (
    fliplr as fliplr,
)
from minijax.numpy.shaping import (
    flipud as flipud,
)
from minijax.numpy.shaping import (
    matrix_transpose as matrix_transpose,
)
from minijax.numpy.shaping import (
    moveaxis as moveaxis,
)
from minijax.numpy.shaping import (
    permute_dims as permute_dims,
)
from minijax.numpy.shaping import (
    ravel as ravel,
)
from minijax.numpy.shaping import (
    repeat as repeat,
)
from minijax.numpy.shaping import (
    reshape as reshape,
)
from minijax.numpy.shaping import (
    resize as resize,
)
from minijax.numpy.shaping import (
    roll as roll,
)
from minijax.numpy.shaping import (
    rollaxis as rollaxis,
)
from minijax.numpy.shaping import (
    rot90 as rot90,
)
from minijax.numpy.shaping import (
    squeeze as squeeze,
)
from minijax.numpy.shaping import (
    swapaxes as swapaxes,
)
from minijax.numpy.shaping import (
    tile as tile,
)
from minijax.numpy.shaping import (
    transpose as transpose,
)
