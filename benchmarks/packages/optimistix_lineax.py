"""Equations of optimistix and lineax: roots, least squares, minima, operators, and their slopes."""

import figures
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx

jax.config.update("jax_enable_x64", True)


def residuals(y, args):
    return jnp.array([10 * (y[1] - y[0] ** 2), args - y[0]])


def main():
    def root(a):
        solver = optx.Newton(rtol=1e-10, atol=1e-10)
        return optx.root_find(lambda y, a: y**3 + y - a, solver, 0.5, a).value

    a = jax.random.normal(jax.random.key(0), (4, 4))
    spd = a @ a.T + jnp.eye(4)
    b = jnp.arange(4.0)
    positive = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
    tall = lx.MatrixLinearOperator(jax.random.normal(jax.random.key(1), (6, 4)))
    levenberg = optx.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    bfgs = optx.BFGS(rtol=1e-8, atol=1e-8)

    def solved(matrix):
        return lx.linear_solve(lx.MatrixLinearOperator(matrix), b).value.sum()

    return {
        "root": root(2.0),
        "slope of the root": jax.grad(root)(2.0),
        "batch of roots": jax.vmap(root)(jnp.arange(3.0)),
        "fixed point": optx.fixed_point(
            lambda y, _: jnp.cos(y), optx.FixedPointIteration(1e-9, 1e-9), 0.5
        ).value,
        "least squares": optx.least_squares(residuals, levenberg, jnp.zeros(2), 1.0).value,
        "minimum": optx.minimise(
            lambda y, args: jnp.sum(residuals(y, args) ** 2), bfgs, jnp.zeros(2), 1.0, max_steps=500
        ).value,
        "cholesky": lx.linear_solve(positive, b, lx.Cholesky()).value,
        "conjugate gradients": lx.linear_solve(positive, b, lx.CG(1e-10, 1e-10)).value,
        "gmres": lx.linear_solve(positive, b, lx.GMRES(1e-10, 1e-10)).value,
        "least norm": lx.linear_solve(tall, jnp.arange(6.0), lx.QR()).value,
        "gradient": jax.grad(solved)(spd),
        "tangent": jax.jvp(solved, (spd,), (a,)),
    }


figures.show(main)
