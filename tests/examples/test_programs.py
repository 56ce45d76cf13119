"""The numerical programs among the examples are right: NumPy or a formula says the same."""

from __future__ import annotations

import heapq
import importlib
import itertools
import math
from pathlib import Path
from statistics import NormalDist
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.turns(3)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The module that the test names, imported as its neighbours in the folder import it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(request.param)


def runs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", [name], indirect=True, ids=[name])


def finite_differences(function: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient, or Jacobian [output, input], of a NumPy function at a vector."""
    columns = [(function(x + e) - function(x - e)) / (2 * step) for e in step * np.eye(len(x))]
    return np.stack(columns, axis=-1)


@pytest.mark.slow
@runs("conjugate_gradients")
def test_conjugate_gradients_agree_with_a_dense_solve(example: ModuleType) -> None:
    result = example.main()

    n = example.SIZE
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    matrix = np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)
    heats = np.stack([heat.ravel() for heat in result.heats.values()], axis=-1)
    exact = np.linalg.solve(matrix, heats).T.reshape(result.temperatures.shape)
    error = np.linalg.norm(result.temperatures - exact, axis=(1, 2))
    assert (error < 1e-3 * np.linalg.norm(exact, axis=(1, 2))).all()


@pytest.mark.slow
@runs("conjugate_gradients")
def test_conjugate_gradients_stop_for_each_heater_by_itself(example: ModuleType) -> None:
    everywhere, point, wave = example.main().steps

    assert wave == 1
    assert 30 < everywhere < point < example.LIMIT


def dense_gaussian(example: ModuleType, seconds: int, push: float, error: float) -> tuple:
    """How measurements [2n] vary together, and with the last state: Kalman's model, unrolled."""
    motion, pushes = example.MOTION.astype(float), example.PUSHES.astype(float)
    sources = 4 + 2 * seconds
    state = np.eye(4, sources)
    rows = []
    for t in range(seconds):
        state = motion @ state
        state[:, 4 + 2 * t : 6 + 2 * t] += push * pushes
        rows.append(state[:2])
    seen = np.concatenate(rows)
    covariance = seen @ seen.T + error**2 * np.eye(2 * seconds)
    return covariance, state @ seen.T, state @ state.T


@runs("kalman_filter")
def test_kalman_filter_gives_the_posterior_of_the_joint_gaussian(example: ModuleType) -> None:
    measured = example.fly(seed=5)[1][:12]
    noise = example.Noise(push=math.log(0.4), error=math.log(3.0))

    beliefs, _ = example.follow(noise, measured)

    covariance, cross, prior = dense_gaussian(example, 12, 0.4, 3.0)
    gain = np.linalg.solve(covariance, cross.T).T
    np.testing.assert_allclose(beliefs.mean[-1], gain @ measured.ravel(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(beliefs.covariance[-1], prior - gain @ cross.T, rtol=1e-3, atol=1e-5)


@runs("kalman_filter")
def test_kalman_likelihood_and_its_gradient_are_those_of_the_joint_gaussian(
    example: ModuleType,
) -> None:
    measured = example.fly(seed=5)[1][:12]

    def exact(logs: np.ndarray) -> np.ndarray:
        covariance, _, _ = dense_gaussian(example, 12, *np.exp(logs))
        y = measured.ravel().astype(float)
        _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
        return -(y @ np.linalg.solve(covariance, y) + log_determinant) / 2

    logs = np.log([0.4, 3.0])
    value, gradient = example.jax.value_and_grad(lambda noise: example.follow(noise, measured)[1])(
        example.Noise(*map(float, logs))
    )

    np.testing.assert_allclose(value, exact(logs), rtol=1e-5)
    np.testing.assert_allclose(gradient, finite_differences(exact, logs), rtol=1e-3)


@pytest.mark.slow
@runs("kalman_filter")
def test_kalman_filter_learns_the_noise_and_follows_the_path(example: ModuleType) -> None:
    result = example.main()

    assert result.push == pytest.approx(example.PUSH, rel=0.2)
    assert result.error == pytest.approx(example.ERROR, rel=0.1)
    assert result.filtered_error < 0.6 * result.measured_error


def histories(model: Any, rolls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every history of the dice, and its joint probability with the rolls."""
    start, changes, faces = (np.exp(np.asarray(x, float)) for x in model)
    paths = np.array(list(itertools.product(range(2), repeat=len(rolls))))
    emitted = faces[paths, rolls].prod(axis=1)
    moved = changes[paths[:, :-1], paths[:, 1:]].prod(axis=1)
    return paths, start[paths[:, 0]] * moved * emitted


@runs("hidden_markov")
def test_forward_algorithm_sums_over_all_histories(example: ModuleType) -> None:
    rolls = np.array([5, 0, 5, 5, 2, 4, 5, 1])

    value = example.log_likelihood(example.first_guess(), rolls)

    _, probabilities = histories(example.first_guess(), rolls)
    np.testing.assert_allclose(value, np.log(probabilities.sum()), rtol=1e-6)


@runs("hidden_markov")
def test_gradient_of_forward_algorithm_is_the_posterior(example: ModuleType) -> None:
    rolls = np.array([5, 0, 5, 5, 2, 4, 5, 1])

    found = example.posterior(example.first_guess(), rolls)

    paths, probabilities = histories(example.first_guess(), rolls)
    loaded = probabilities @ paths / probabilities.sum()
    np.testing.assert_allclose(found, np.stack([1 - loaded, loaded], axis=-1), rtol=1e-5)


@pytest.mark.slow
@runs("hidden_markov")
def test_baum_welch_never_loses_likelihood(example: ModuleType) -> None:
    _, rolls = example.play()
    with example.jax.enable_x64(True):
        model = example.Model(*(np.asarray(leaf, float) for leaf in example.first_guess()))
        _, log_likelihoods = example.fit(model, rolls)

    assert (np.diff(log_likelihoods) > -1e-8).all()


@pytest.mark.slow
@runs("hidden_markov")
def test_baum_welch_learns_the_dice(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(np.exp(result.model.faces), example.TRUE_FACES, atol=0.05)
    assert result.guessed > 0.75


@runs("rnn")
def test_rnn_equals_a_loop_in_numpy(example: ModuleType) -> None:
    network = example.init_network(example.jax.random.key(3))
    bits = np.random.default_rng(0).integers(0, 2, (7, 2)).astype(np.float32)

    found = example.logits(network, bits)

    weights = example.Network(*(np.asarray(leaf, float) for leaf in network))
    hidden, expected = np.zeros(example.HIDDEN), []
    for pair in bits:
        hidden = np.tanh(pair @ weights.from_bits + hidden @ weights.from_hidden + weights.bias)
        expected.append(hidden @ weights.to_output + weights.output_bias)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@runs("rnn")
def test_rnn_adds_numbers_three_times_as_long(example: ModuleType) -> None:
    result = example.main()

    a, b = np.random.default_rng(0).integers(0, 2**example.TESTED_BITS, (2, 500))
    sums = example.add(result.network, a.astype(np.int32), b.astype(np.int32), example.TESTED_BITS)
    assert result.correct >= 0.99
    assert np.mean(np.asarray(sums) == a + b) >= 0.99


def likeliest_name(example: ModuleType, table: np.ndarray, first: str) -> tuple[str, float]:
    """The likeliest name of any length: cheapest beginnings first, so the first complete one."""
    queue = [(0.0, [example.END, example.LETTERS.index(first)])]
    while queue:
        cost, name = heapq.heappop(queue)
        if name[-1] == example.END:
            return "".join(example.LETTERS[n] for n in name[1:-1]), -cost
        for letter, log_probability in enumerate(table[name[-2], name[-1]]):
            heapq.heappush(queue, (cost - float(log_probability), [*name, letter]))
    raise AssertionError("some name is always complete in the end")


@pytest.mark.slow
@runs("beam_search")
def test_beam_search_finds_the_likeliest_names(example: ModuleType) -> None:
    table = example.letter_model()

    found = example.main().beam

    for first, (name, score) in found.items():
        expected, log_probability = likeliest_name(example, table, first)
        assert score == pytest.approx(log_probability, abs=1e-4)
        assert name == expected


@pytest.mark.slow
@runs("beam_search")
def test_beam_of_one_is_the_greedy_reader(example: ModuleType) -> None:
    table = example.letter_model()

    found = example.search_all(table, width=1)

    for first, (name, _) in found.items():
        letters = [example.END, example.LETTERS.index(first)]
        while letters[-1] != example.END and len(letters) < example.LIMIT:
            letters.append(int(np.argmax(table[letters[-2], letters[-1]])))
        assert name == "".join(example.LETTERS[n] for n in letters if n != example.END)


@runs("metropolis")
def test_metropolis_chain_equals_a_loop_over_the_same_dice(example: ModuleType) -> None:
    random, key = example.jax.random, example.jax.random.key(4)
    start = np.array([0.5, -0.5], np.float32)

    points, moved = example.sample(example.log_density, key, start, steps=40, move=0.8)

    def log_density(point: np.ndarray) -> float:
        x, y = point
        return -(x**2) / 2 - ((y - x**2) / example.NOISE) ** 2 / 2

    point, expected, accepted = start, [], []
    for step_key in random.split(key, 40):
        direction, dice = random.split(step_key)
        proposal = point + np.float32(0.8) * np.asarray(random.normal(direction, (2,)))
        accepted.append(math.log(random.uniform(dice)) < log_density(proposal) - log_density(point))
        point = proposal if accepted[-1] else point
        expected.append(point)
    assert moved.tolist() == accepted
    np.testing.assert_allclose(points, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@runs("metropolis")
def test_metropolis_samples_have_the_moments_of_the_banana(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.mean, [0, 1], atol=0.05)
    exact = [[1, 0], [0, 2 + example.NOISE**2]]
    np.testing.assert_allclose(result.covariance, exact, atol=0.15)


@pytest.mark.slow
@runs("metropolis")
def test_metropolis_samples_have_normal_quantiles(example: ModuleType) -> None:
    result = example.main()

    x, y = result.samples.reshape(-1, 2).T
    shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    exact = np.array([NormalDist().inv_cdf(p) for p in shares])
    np.testing.assert_allclose(np.quantile(x, shares), exact, atol=0.05)
    np.testing.assert_allclose(np.quantile((y - x**2) / 0.5, shares), exact, atol=0.05)


@pytest.mark.slow
@runs("k_means")
def test_k_means_equals_a_loop_in_numpy(example: ModuleType) -> None:
    points, _ = example.heaps()
    start = points[: example.GROUPS]

    found = example.group(points, start)

    def nearest(centres: np.ndarray) -> np.ndarray:
        return np.argmin(((points[:, None] - centres) ** 2).sum(axis=-1), axis=-1)

    before, groups, steps = None, nearest(start), 0
    while before is None or (groups != before).any():
        centres = np.stack([points[groups == g].mean(axis=0) for g in range(len(start))])
        before, groups, steps = groups, nearest(centres), steps + 1
    assert found.groups.tolist() == groups.tolist()
    assert int(found.steps) == steps
    np.testing.assert_allclose(found.centres, centres, rtol=1e-4)


@pytest.mark.slow
@runs("k_means")
def test_k_means_finds_the_heaps(example: ModuleType) -> None:
    result = example.main()

    means = [result.points[result.truth == heap].mean(axis=0) for heap in range(example.GROUPS)]
    order = [int(np.argmin(((result.centres - m) ** 2).sum(axis=-1))) for m in means]
    assert sorted(order) == list(range(example.GROUPS))
    np.testing.assert_allclose(result.centres[order], means, atol=0.01)
    assert np.mean(np.array(order)[result.truth] == result.groups) > 0.99


@pytest.mark.slow
@runs("n_body")
def test_n_body_finds_the_published_start(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.speed, [-0.93240737, -0.86473146], atol=2e-5)
    assert result.misses[0] > 1e-2
    assert result.misses[-1] < 1e-6
    assert result.energy_drift < 1e-5


@pytest.mark.slow
@runs("n_body")
def test_n_body_chase_each_other_a_third_of_a_period_apart(example: ModuleType) -> None:
    orbit = example.main().orbit

    third = example.STEPS / 3
    times = np.arange(0, example.STEPS, 10)
    later = (times[:, None] + np.array([third, 2 * third])) % example.STEPS
    path = orbit[:, 0]
    # Between two steps the path is straight to six digits.
    between = [np.interp(later, np.arange(len(path) + 1), [*c, c[0]]) for c in path.T]
    one, two = np.moveaxis(np.stack(between, axis=-1), 1, 0)
    others = orbit[times, 1:]
    gaps = [np.abs(others - np.stack(pair, axis=1)).max() for pair in ((one, two), (two, one))]
    assert min(gaps) < 1e-4


@pytest.mark.slow
@runs("n_body")
def test_n_body_jacobian_agrees_with_a_simulation_in_numpy(example: ModuleType) -> None:
    def pull(x: np.ndarray) -> np.ndarray:
        away = x[None] - x[:, None]
        distance = np.linalg.norm(away, axis=-1) + np.where(np.eye(3), np.inf, 0)
        return (away / distance[..., None] ** 3).sum(axis=1)

    def end(speed: np.ndarray) -> np.ndarray:
        corner = np.array(example.CORNER)
        x, v = np.stack([corner, -corner, 0 * corner]), np.outer([-0.5, -0.5, 1], speed)
        for _ in range(100):
            v = v + 0.005 * pull(x)
            x = x + 0.01 * v
            v = v + 0.005 * pull(x)
        return np.concatenate([x.ravel(), v.ravel()])

    jax, jnp = example.jax, example.jnp

    def ours(speed: Any) -> Any:
        now = example.after(example.figure_of_eight(speed), 1.0, 100)
        return jnp.concatenate([now.positions.ravel(), now.velocities.ravel()])

    with jax.enable_x64(True):
        speed = np.array(example.ROUGH_SPEED)
        np.testing.assert_allclose(ours(jnp.asarray(speed)), end(speed), rtol=1e-10)
        jacobian = jax.jacfwd(ours)(jnp.asarray(speed))
    np.testing.assert_allclose(jacobian, finite_differences(end, speed), rtol=1e-6, atol=1e-8)


@runs("sorting_network")
@pytest.mark.parametrize("count", [2, 4, 8])
def test_sorting_network_sorts_all_zeros_and_ones(example: ModuleType, count: int) -> None:
    # A network that sorts every sequence of zeros and ones sorts everything.
    inputs = np.array(list(itertools.product([0.0, 1.0], repeat=count)), np.float32)

    found, _ = example.jax.vmap(lambda x: example.soft_sort(x, 1e-3))(inputs)

    np.testing.assert_array_equal(found, np.sort(inputs, axis=-1))


@runs("sorting_network")
def test_soft_permutation_gives_the_soft_values(example: ModuleType) -> None:
    values = np.random.default_rng(0).normal(size=8).astype(np.float32)

    softly_sorted, permutation = example.soft_sort(values, 0.5)

    np.testing.assert_allclose(np.sum(permutation, axis=0), np.ones(8), rtol=1e-5)
    np.testing.assert_allclose(np.sum(permutation, axis=1), np.ones(8), rtol=1e-5)
    np.testing.assert_allclose(permutation @ values, softly_sorted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@runs("sorting_network")
def test_soft_sort_differentiates_as_in_numpy(example: ModuleType) -> None:
    jax, jnp = example.jax, example.jnp
    values = np.random.default_rng(1).normal(size=8)

    def in_numpy(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        for partners in example.batcher(8):
            for i, j in enumerate(partners):
                if i < j:
                    stay = 1 / (1 + np.exp(-(x[j] - x[i]) / 0.5))
                    x[i], x[j] = (
                        stay * x[i] + (1 - stay) * x[j],
                        stay * x[j] + (1 - stay) * x[i],
                    )
        return x

    with jax.enable_x64(True):
        jacobian = jax.jacrev(lambda x: example.soft_sort(x, 0.5)[0])(jnp.asarray(values))

    np.testing.assert_allclose(jacobian, finite_differences(in_numpy, values), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@runs("sorting_network")
def test_sorting_network_learns_the_secret_order(example: ModuleType) -> None:
    result = example.main()

    assert result.lists >= 0.7
    assert result.pairs >= 0.95


@runs("maml")
def test_meta_gradient_of_a_linear_model_follows_the_formula(example: ModuleType) -> None:
    rng = np.random.default_rng(0)
    features, test_features = rng.normal(size=(2, 12, 3))
    y, test_y = rng.normal(size=(2, 12))
    weights = rng.normal(size=3)
    rate, steps = example.INNER_RATE, 4

    with example.jax.enable_x64(True):
        found = example.jax.grad(
            lambda w: example.loss_after(
                lambda w, x: x @ w, w, example.Task(features, y, test_features, test_y), steps
            )
        )(weights)

    adapted, shrink = weights, np.eye(3)
    for _ in range(steps):
        adapted = adapted - rate * 2 / 12 * features.T @ (features @ adapted - y)
        shrink = shrink @ (np.eye(3) - rate * 2 / 12 * features.T @ features)
    gradient = 2 / 12 * test_features.T @ (test_features @ adapted - test_y)
    np.testing.assert_allclose(found, shrink.T @ gradient, rtol=1e-10)


@pytest.mark.turns(9)
@pytest.mark.slow
@runs("maml")
def test_maml_adapts_where_plain_training_does_not(example: ModuleType) -> None:
    result = example.main()

    assert result.meta < 0.4
    assert result.meta < 0.1 * min(result.plain, result.unadapted)


def in_tree_order(example: ModuleType, vector: np.ndarray, hidden: int) -> Any:
    """A small network from a vector of its weights."""
    up, bias, down = np.split(vector, [2 * hidden, 3 * hidden])
    return example.Network(up.reshape(2, hidden), bias, down.reshape(hidden, 2))


@pytest.mark.slow
@runs("neural_ode")
def test_adjoint_agrees_with_a_solver_in_numpy(example: ModuleType) -> None:
    jax, hidden = example.jax, 3
    grid = example.Grid(interval=0.25, intervals=3, steps=20)
    rng = np.random.default_rng(0)
    vector, weights = rng.normal(size=5 * hidden + 2), rng.normal(size=(4, 2))

    def in_numpy(vector: np.ndarray) -> np.ndarray:
        network, x = in_tree_order(example, vector[:-2], hidden), vector[-2:]

        def field(x: np.ndarray) -> np.ndarray:
            return np.tanh(x @ network.up + network.bias) @ network.down

        states, h = [x], grid.interval / grid.steps
        for number in range(1, grid.intervals * grid.steps + 1):
            k1 = field(x)
            k2 = field(x + h / 2 * k1)
            k3 = field(x + h / 2 * k2)
            k4 = field(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            if number % grid.steps == 0:
                states.append(x)
        return np.sum(weights * np.stack(states))

    vector = np.append(vector, [0.7, -0.4])[2:]
    with jax.enable_x64(True):
        grads = jax.grad(
            lambda network, x: (weights * example.integrate(example.field, grid, network, x)).sum(),
            argnums=(0, 1),
        )(in_tree_order(example, vector[:-2], hidden), vector[-2:])

    found = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(grads)])
    np.testing.assert_allclose(found, finite_differences(in_numpy, vector), rtol=1e-6, atol=1e-8)


@runs("neural_ode")
def test_adjoint_keeps_nothing_of_the_steps(example: ModuleType) -> None:
    jax, jnp = example.jax, example.jnp
    network = in_tree_order(example, np.ones(15, np.float32), 3)

    def kept(steps: int) -> list[tuple[int, ...]]:
        grid = example.Grid(interval=0.5, intervals=4, steps=steps)
        _, pull = jax.vjp(lambda n: example.integrate(example.field, grid, n, jnp.ones(2)), network)
        return sorted(leaf.shape for leaf in jax.tree.leaves(pull))

    assert kept(steps=50) == kept(steps=5)
    assert (5, 2) in kept(steps=5)


@pytest.mark.slow
@runs("neural_ode")
def test_neural_ode_stays_on_the_limit_cycle(example: ModuleType) -> None:
    result = example.main()

    assert result.error < 0.05
    assert result.later_error < 0.05


@runs("neural_ode")
def test_limit_cycle_solves_its_equation(example: ModuleType) -> None:
    grid = example.Grid(interval=1e-3, intervals=2000, steps=1)
    path = example.trajectories(np.array([[0.5, 0.2]]), grid).astype(float)[0]

    # The closed solution is in 32 bits: differences over many steps keep its rounding small.
    velocity = (path[200:] - path[:-200]) / 0.2
    x, y = path[100:-100].T
    shrink = 1 - x**2 - y**2
    expected = np.stack([shrink * x - 1.5 * y, shrink * y + 1.5 * x], axis=-1)
    np.testing.assert_allclose(velocity, expected, atol=0.01)


@runs("fixed_point")
def test_fixed_point_solves_keplers_equation(example: ModuleType) -> None:
    mean_angles = np.linspace(-6, 6, 25).astype(np.float32)

    found = example.jax.vmap(
        lambda m: example.fixed_point(example.kepler, (np.float32(0.6), m), m)
    )(mean_angles)

    angles = mean_angles.astype(float)
    for _ in range(30):
        angles -= (angles - 0.6 * np.sin(angles) - mean_angles) / (1 - 0.6 * np.cos(angles))
    np.testing.assert_allclose(found, angles, atol=1e-5)


@runs("fixed_point")
def test_derivatives_through_fixed_point_follow_the_formulas(example: ModuleType) -> None:
    jax, m, e = example.jax, 1.3, 0.4

    def angle(e: Any) -> Any:
        return example.fixed_point(example.kepler, (e, m), m)

    with jax.enable_x64(True):
        found = float(angle(e)), float(jax.grad(angle)(e)), float(jax.grad(jax.grad(angle))(e))

    sine, cosine, slope = math.sin(found[0]), math.cos(found[0]), 1 - e * math.cos(found[0])
    first = sine / slope
    second = (cosine * first * slope + sine * (cosine - e * sine * first)) / slope**2
    np.testing.assert_allclose(found[1:], [first, second], rtol=1e-4)


@pytest.mark.slow
@runs("fixed_point")
def test_fixed_point_lets_gradients_find_the_orbit(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.orbit, example.TRUE_ORBIT, atol=0.01)
    assert result.distance == pytest.approx(example.ERROR * math.sqrt(2), rel=0.15)


@pytest.mark.turns(9)
@pytest.mark.slow
@pytest.mark.feature("EX-10")
@runs("epidemic")
def test_epidemic_finds_what_made_the_counts(example: ModuleType) -> None:
    result = example.main()

    for name in example.Illness._fields:
        found, error, truth = (getattr(part, name) for part in result)
        assert abs(found - truth) < 4 * error
        assert error < 0.05 * truth


@pytest.mark.slow
@pytest.mark.feature("EX-10")
@runs("epidemic")
def test_slopes_of_an_epidemic_equal_differences(example: ModuleType) -> None:
    jax, vector = example.jax, np.array(example.GUESS, np.float64)

    def missing(vector: np.ndarray) -> np.ndarray:
        return np.asarray(example.residuals(example.Illness(*vector), np.zeros(len(example.DAYS))))

    with jax.enable_x64(True):
        found = example.slopes(example.Illness(*vector))
        expected = finite_differences(missing, vector, step=1e-4)

    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.feature("EX-06", "EX-07", "EX-08")
@pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning")
@runs("look_inside")
def test_look_inside_attention_by_blocks_holds_less(example: ModuleType) -> None:
    result = example.main()

    assert result.whole.alive > 5 * result.blocks.alive
    assert result.difference < 1e-5
    # Scores and values, two operations for each term.
    assert result.kernels.flops > 2 * 2 * example.LENGTH**2 * example.WIDTH
    assert result.profile.calls[0].times == 3
