from minijax.scipy.cluster import vq as vq
