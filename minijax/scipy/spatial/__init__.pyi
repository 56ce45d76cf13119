from minijax.scipy.spatial import transform as transform
