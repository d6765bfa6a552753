"""One curve or sheet each: a circle, a spiral, an S-curve in three dimensions."""

import numpy as np

from land.datasets._sampling import (
    FloatArray,
    RandomState,
    add_noise,
    as_generator,
    check_count,
    check_scale,
)


def make_circle(
    n_samples: int = 300, *, noise: float = 0.1, random_state: RandomState = None
) -> FloatArray:
    """Draw points around the unit circle: a closed loop.

    Parameters
    ----------
    n_samples : int
        Number of points.
    noise : float
        Standard deviation of the isotropic Gaussian noise.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.

    Examples
    --------
    >>> import numpy as np
    >>> from land.datasets import make_circle
    >>> X = make_circle(300, noise=0.0, random_state=0)
    >>> bool(np.allclose(np.linalg.norm(X, axis=1), 1.0))
    True
    """
    n_samples = check_count(n_samples, "n_samples")
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    angles = generator.uniform(0.0, 2.0 * np.pi, n_samples)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    return add_noise(points, noise, generator)


def make_spiral(
    n_samples: int = 300,
    *,
    n_turns: float = 2.0,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> FloatArray:
    """Draw points along an Archimedean spiral whose turns lie one unit apart.

    The spiral starts at radius 1/2 on the positive first axis and winds
    anticlockwise: r = 1/2 + angle / (2 pi).

    Parameters
    ----------
    n_samples : int
        Number of points.
    n_turns : float
        Number of turns, positive.
    noise : float
        Standard deviation of the isotropic Gaussian noise.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.

    Examples
    --------
    >>> from land.datasets import make_spiral
    >>> make_spiral(300, random_state=0).shape
    (300, 2)
    """
    n_samples = check_count(n_samples, "n_samples")
    n_turns = check_scale(n_turns, "n_turns", positive=True)
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    inner, outer = 0.5, 0.5 + n_turns
    # Arc length grows as the squared radius (nearly), so this spreads points evenly.
    radii = np.sqrt(generator.uniform(inner**2, outer**2, n_samples))
    angles = 2.0 * np.pi * (radii - inner)
    points = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    return add_noise(points, noise, generator)


def make_s_curve(
    n_samples: int = 600, *, noise: float = 0.05, random_state: RandomState = None
) -> FloatArray:
    """Draw points on a sheet bent into an S, in three dimensions.

    The sheet is (sin t, w, sign(t) (1 - cos t)) with t uniform on
    [-3 pi / 2, 3 pi / 2] and w uniform on [-1, 1]: three quarters of a unit circle
    each way, extended along the second axis. It is flat, so its geodesics are the
    straight lines of the plane (t, w).

    Parameters
    ----------
    n_samples : int
        Number of points.
    noise : float
        Standard deviation of the isotropic Gaussian noise.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        The points.

    Examples
    --------
    >>> from land.datasets import make_s_curve
    >>> make_s_curve(600, random_state=0).shape
    (600, 3)
    """
    n_samples = check_count(n_samples, "n_samples")
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    t = generator.uniform(-1.5 * np.pi, 1.5 * np.pi, n_samples)
    width = generator.uniform(-1.0, 1.0, n_samples)
    points = np.column_stack([np.sin(t), width, np.sign(t) * (1.0 - np.cos(t))])
    return add_noise(points, noise, generator)
