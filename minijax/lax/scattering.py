from minijax.lax.gather_scatter import scatter, scatter_add, scatter_sub, scatter_mul, scatter_min, scatter_max, scatter_p, scatter_add_p,scatter_sub_p,scatter_mul_p,scatter_min_p,scatter_max_p
from minijax.lax.gather_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
