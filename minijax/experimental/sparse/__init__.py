"""Sparse arrays.  Mirrors jax.experimental.sparse."""

from minijax.core import deferral
from minijax.experimental.sparse.arrays import (
    JAXSparse as JAXSparse,
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)
from minijax.experimental.sparse.coordinates import (
    BCOO as BCOO,
    bcoo_fromdense as bcoo_fromdense,
    bcoo_sort_indices as bcoo_sort_indices,
    bcoo_sum_duplicates as bcoo_sum_duplicates,
    bcoo_todense as bcoo_todense,
)
from minijax.experimental.sparse.functions import (
    empty as empty,
    eye as eye,
    grad as grad,
    jacfwd as jacfwd,
    jacrev as jacrev,
    random_bcoo as random_bcoo,
    sparsify as sparsify,
    todense as todense,
    value_and_grad as value_and_grad,
)
from minijax.experimental.sparse.layouts import (
    bcoo_concatenate as bcoo_concatenate,
    bcoo_reduce_sum as bcoo_reduce_sum,
    bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev,
    bcoo_slice as bcoo_slice,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_transpose as bcoo_transpose,
    bcoo_update_layout as bcoo_update_layout,
)
from minijax.experimental.sparse.products import (
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_extract as bcoo_extract,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from minijax.experimental.sparse.rows import (
    BCSR as BCSR,
    bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general,
    bcsr_extract as bcsr_extract,
    bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates,
    bcsr_todense as bcsr_todense,
)

deferral.publish(globals())
