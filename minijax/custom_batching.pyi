from minijax.transforms.autodiff.custom_batching import (
    custom_vmap as custom_vmap,
    sequential_vmap as sequential_vmap,
)
