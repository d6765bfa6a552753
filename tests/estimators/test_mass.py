"""Densities integrate to one, and samples are theirs."""

import numpy as np
import pytest

import land

makers = land.datasets
SHARP = {"sigma": 0.2, "rho": 0.01}
CASES = {
    "two moons": (lambda: makers.make_two_moons(200, random_state=0)[0], SHARP),
    "half-ellipse": (lambda: makers.make_half_ellipse(200, random_state=0), SHARP),
    "ring": (lambda: makers.make_circle(200, random_state=0), {}),
}
CELLS, BINS, N_DRAWN = 180, 18, 4000


# One distribution for two moons goes on between them; its mass is one on the way too.
@pytest.mark.filterwarnings("ignore:the fit did not converge")
@pytest.mark.nightly
@pytest.mark.parametrize("reference", ["lebesgue", "riemannian"])
@pytest.mark.parametrize("case", CASES)
def test_mass_is_one_and_samples_follow_the_density(case, reference):
    make, options = CASES[case]
    model = land.LAND(reference=reference, random_state=0, **options).fit(make())
    assert not model.metric_.is_flat
    samples, _ = model.sample(N_DRAWN, random_state=1)
    low, high = samples.min(axis=0), samples.max(axis=0)
    low, high = low - 0.35 * (high - low), high + 0.35 * (high - low)
    width = (high - low) / CELLS
    axes = low + (np.arange(CELLS)[:, None] + 0.5) * width
    points = np.stack(np.meshgrid(*axes.T, indexing="ij"), axis=-1)
    log_densities = model.score_samples(points.reshape(-1, 2))
    masses = np.exp(log_densities) * width.prod()
    assert masses.sum() == pytest.approx(1.0, abs=0.005)

    per_bin = CELLS // BINS
    expected = masses.reshape(BINS, per_bin, BINS, per_bin).sum(axis=(1, 3)).ravel()
    place = np.floor((samples - low) / (per_bin * width)).astype(int)
    found = np.bincount(place @ [BINS, 1], minlength=BINS**2)
    expected = N_DRAWN * expected
    many = expected >= 5.0
    expected = np.append(expected[many], expected[~many].sum())
    found = np.append(found[many], found[~many].sum())
    chi_square = np.sum((found - expected) ** 2 / expected)
    degrees = len(found) - 1
    assert (chi_square - degrees) / np.sqrt(2.0 * degrees) < 3.0
