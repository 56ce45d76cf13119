from minijax.example_libraries import optimizers as optimizers, stax as stax
