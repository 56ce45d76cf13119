from minijax.transforms.jet import jet as jet
