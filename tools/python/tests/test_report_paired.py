"""Statistics of paired runs: against scipy where it is installed, and by how often intervals hold the true difference."""
import math

import numpy as np
import pytest

from ndtd.report import paired

DRIVES = 200  # simulated per case: shares are known to 0.015


def ar1(rng, series, count, phi):
    """(series, count) of unit variance whose neighbours have the correlation phi."""
    noise = rng.normal(size=(series, count + 200))
    out = np.zeros_like(noise)
    for at in range(1, noise.shape[1]):
        out[:, at] = phi * out[:, at - 1] + math.sqrt(1 - phi * phi) * noise[:, at]
    return out[:, 200:]


def errors(rng, count, phi, scale=1.2, common=0.5):
    """Errors of two runs: lengths of 3D errors which have a part in common, as of the map; the second ones are larger by `scale`."""
    shared, one, other = (ar1(rng, 3, count, phi) for _ in range(3))
    a, b = math.sqrt(common), math.sqrt(1 - common)
    return np.linalg.norm(a * shared + b * one, axis=0), np.linalg.norm(a * shared + b * scale * other, axis=0)


def true_differences(phi, scale):
    """Differences of a drive that is long enough to know them to a hundredth of what a drive of 300 scans tells."""
    first, second = errors(np.random.default_rng(99), 300_000, phi, scale)
    return {name: float(one(second) - one(first)) for name, one in paired.STATISTICS.items()}


def share_held(phi, count, choose, scale=1.2):
    """Share of simulated drives whose interval holds the truth, per statistic."""
    rng, truth = np.random.default_rng(17), true_differences(phi, scale)
    held = {name: 0 for name in truth}
    for drive in range(DRIVES):
        first, second = errors(rng, count, phi, scale)
        for name, one in paired.differences(first, second, choose(first, second), seed=drive).items():
            held[name] += one.low <= truth[name] <= one.high
    return {name: found / DRIVES for name, found in held.items()}


def chosen(first, second):
    return paired.choose_blocks(first, second, second - first)


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr(paired, "ROUNDS", 250)


@pytest.mark.parametrize("phi, count, least", [(0.0, 100, 0.92), (0.9, 600, 0.90)])
def test_intervals_hold_the_truth(few_rounds, phi, count, least):
    for name, share in share_held(phi, count, chosen).items():
        assert least <= share <= 0.995, (name, share)


def test_single_scans_would_not_do(few_rounds):
    """The same simulation sees intervals that ignore the correlation: they hold the truth far too rarely."""
    alone = share_held(0.9, 600, lambda first, _: paired.Blocks(1, len(first), False))
    assert alone["mean"] < 0.6 and alone["median"] < 0.8


def test_equal_runs_are_seldom_called_different(few_rounds):
    """No difference, three statistics, p by Holm below 0.05: in about one family of twenty at most."""
    rng, wrong = np.random.default_rng(3), 0
    for drive in range(DRIVES):
        first, second = errors(rng, 300, 0.8, scale=1.0)
        found = paired.differences(first, second, chosen(first, second), seed=drive)
        wrong += min(paired.holm([one.p for one in found.values()])) < 0.05
    assert wrong / DRIVES < 0.09


def test_true_differences_are_found(few_rounds):
    """Errors of twice the size, in 300 scans: nearly always."""
    rng, found = np.random.default_rng(4), 0
    for drive in range(50):
        first, second = errors(rng, 300, 0.8, scale=2.0)
        found += paired.differences(first, second, chosen(first, second), seed=drive)["mean"].p < 0.05
    assert found >= 48


def test_block_length_follows_the_correlation():
    rng = np.random.default_rng(5)
    lengths = [np.median([paired.block_length(ar1(rng, 1, 500, phi)[0]) for _ in range(20)]) for phi in (0.0, 0.5, 0.8, 0.95)]
    assert lengths == sorted(lengths) and lengths[0] < 3 and lengths[3] > 3 * lengths[1]
    # Politis and White: (2 G^2 / D)^(1/3) n^(1/3) with G and D of AR(1) in closed form is (6 phi^2 / (1 - phi^2)^2 n)^(1/3)
    assert lengths[2] == pytest.approx((6 * 0.8**2 / (1 - 0.8**2) ** 2 * 500) ** (1 / 3), rel=0.35)
    short = paired.choose_blocks(ar1(rng, 1, 60, 0.99)[0])
    assert short.is_short and short.length == 12 and short.freedom == 4
    assert paired.choose_blocks(np.ones(30)) == paired.Blocks(1, 30.0, False)


def test_deterministic_and_consistent():
    rng = np.random.default_rng(6)
    first, second = errors(rng, 200, 0.5)
    blocks = chosen(first, second)
    found = paired.differences(first, second, blocks)
    assert found == paired.differences(first.copy(), second.copy(), blocks)
    assert found != paired.differences(first, second, blocks, seed=2)
    turned = paired.differences(second, first, blocks)
    for name, one in found.items():
        assert one.difference == -turned[name].difference and one.p == pytest.approx(turned[name].p)
        assert (one.p < 0.05) == (not one.low <= 0 <= one.high)
    same = paired.differences(first, first, blocks)
    assert all((one.low, one.difference, one.high, one.p) == (0, 0, 0, 1) for one in same.values())
    moved = paired.differences(first, first + 1.0, blocks)["mean"]
    assert moved.p < 1e-9 and moved.low == pytest.approx(1.0)


def test_quantiles_are_those_of_the_tools():
    """ndt/quantile.h interpolates linearly between neighbours, as numpy does by default."""
    values = np.random.default_rng(7).exponential(size=(3, 78))
    for q in (0.0, 0.05, 0.5, 0.95, 1.0):
        assert np.allclose(paired.quantile_of(q)(values), np.quantile(values, q, axis=-1), rtol=1e-13)
    assert paired.quantile_of(0.5)(np.array([4.0])) == 4.0


def test_holm():
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert paired.holm([]) == [] and paired.holm([0.5, 0.9]) == [1.0, 1.0]


def test_share_below():
    assert paired.share_below(np.array([1.0, 2, 3, 4]), np.array([0.0, 2, 4, 3])) == 0.625


def test_student_as_scipy():
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 3, 4, 9, 30, 101):
        for t in (0.0, 0.1, 1.0, 2.5, 8.0):
            assert paired.student_tail(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-12)
        assert paired.student_quantile(0.05, freedom) == pytest.approx(stats.t.isf(0.025, freedom), rel=1e-9)


@pytest.mark.parametrize("count, digits", [(6, 9), (25, 9), (26, 9), (80, 9), (80, 1), (12, 0)])
def test_signed_rank_as_scipy(count, digits):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(8)
    first, second = rng.normal(size=count).round(digits), rng.normal(0.4, size=count).round(digits)
    method = "exact" if digits == 9 and count <= paired.EXACT_UP_TO else "asymptotic"
    found = paired.signed_rank(first, second, paired.Blocks(1, count, False))
    expected = stats.wilcoxon(second - first, method=method, correction=False)
    assert found == pytest.approx(expected.pvalue, rel=1e-9)


def test_bootstrap_of_single_scans_as_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(9)
    first, second = rng.exponential(size=400), rng.exponential(1.3, size=400)
    found = paired.differences(first, second, paired.Blocks(1, 400.0, False))["mean"]
    drawn = stats.bootstrap((first, second), lambda a, b, axis=-1: np.mean(b, axis) - np.mean(a, axis), paired=True, vectorized=True,
                            n_resamples=2000, rng=np.random.default_rng(1))
    assert (found.high - found.low) / 2 == pytest.approx(1.966 * drawn.standard_error, rel=0.08)


def test_signed_rank_takes_blocks():
    """Repeated scans are no new evidence; below six blocks there is no test."""
    rng = np.random.default_rng(10)
    first, second = rng.normal(size=30), rng.normal(0.5, size=30)
    once = paired.signed_rank(first, second, paired.Blocks(1, 30.0, False))
    often = paired.signed_rank(np.repeat(first, 5), np.repeat(second, 5), paired.Blocks(5, 30.0, False))
    assert often == pytest.approx(once)
    assert paired.signed_rank(first, second, paired.Blocks(6, 5.0, False)) is None
    assert paired.signed_rank(first, first, paired.Blocks(1, 30.0, False)) is None
