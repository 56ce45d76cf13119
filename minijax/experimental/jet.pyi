from minijax.transforms.autodiff.jet import jet as jet
