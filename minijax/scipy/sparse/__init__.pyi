from minijax.scipy.sparse import linalg as linalg
