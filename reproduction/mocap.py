"""The appendix's motion capture: means of poses, in two and three dimensions.

A clip of running and one of jumping jacks, projected onto their first principal
components, and mixtures of two components. Movements that repeat trace loops; a pose
between the two ends of a movement is no pose of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree
from sklearn.decomposition import PCA

import land
from land.plotting import plot_data, plot_geodesics
from land.plotting.sheet import sheet
from reproduction.data import MOCAP_CLIPS, load_mocap
from reproduction.figures import bare, handles, mark_means, markdown_table, without
from reproduction.means import LOW, density_percentiles
from reproduction.models import STYLES, describe, fit, make
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "means of running and jumping"
CLAIM = (
    "... we see that the LAND means fall inside the data, while the GMM means are "
    "actually outside of the manifold.",
    "appendix, Motion Capture Data",
)
KINDS = ("land", "gmm")
_NAMES = {"22_16": "jumping jacks (22_16)"}
_CURVES, _POINTS = 50, 25


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common = {"quick": quick, "seed": 0, "n_components": 2, "dimensions": [2, 3]}
    common |= {"sigma": "auto", "rho": "auto", "drawn": ["09_01", "22_16"]}
    if quick:
        return common | {"clips": ["09_01", "22_16"], "every": 3, "n_samples": 300}
    runs = [clip for clip in MOCAP_CLIPS if clip.startswith("09")]
    return common | {"clips": [*runs, "22_16"], "every": 1, "n_samples": 1000}


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Fit mixtures to all clips in both dimensions."""
    clips = {clip: load(settings, clip, task.data_home) for clip in settings["clips"]}
    rows = [
        _fitted(settings, task, clip, dim, kind, poses[:, :dim])
        for clip, poses in clips.items()
        for dim in settings["dimensions"]
        for kind in KINDS
    ]
    header = ["clip", "D", "model", "percentiles of the means", "distance to the data"]
    lines = [
        [
            _name(row["clip"]),
            row["dim"],
            STYLES[row["model"]][0],
            " and ".join(f"{value:.0f}" for value in row["percentiles"]),
            " and ".join(f"{value:.1f}" for value in row["distances"]),
        ]
        for row in rows
    ]
    notes = [
        "The paper names neither sigma nor rho, nor which of the eleven runs of "
        "subject 9; it shows one. Poses are joint positions relative to the hips; "
        "angles would be another choice. The principal components are those of each "
        "clip.",
        "Percentile of a mean: the share of the frames (in %) whose neighbourhood, of "
        "the size of LAND's sigma, is less dense.",
        "Distance to the data: of a mean to the nearest frame, in units of the median "
        "distance of a frame to the nearest frame that is not its neighbour in time.",
    ]
    numbers = {"rows": without(rows, "geodesics")}
    figures = {"": _draw(rows, clips, settings)}
    claims = [_claim(rows)]
    return Outcome(numbers, figures, claims, markdown_table(header, lines), notes)


def load(settings: dict[str, Any], clip: str, data_home: Any) -> np.ndarray:
    """Poses of a clip in as many principal components as are needed."""
    poses = load_mocap(clip, data_home=data_home)
    most = max(settings["dimensions"])
    return PCA(most, random_state=0).fit_transform(poses)[:: settings["every"]]


def spacing(poses: np.ndarray, gap: int = 10) -> float:
    """Median distance to the nearest frame that is `gap` frames away at least."""
    distances = np.linalg.norm(poses[:, None] - poses, axis=2)
    frames = np.arange(len(poses))
    distances[np.abs(frames[:, None] - frames) < gap] = np.inf
    return float(np.median(distances.min(axis=1)))


def _fitted(
    settings: dict, task: Task, clip: str, dim: int, kind: str, poses: np.ndarray
) -> dict[str, Any]:
    """Fit one mixture and look its means up among the data: a piece."""
    place = {"clip": clip, "dim": dim, "model": kind}
    names = ("seed", "n_components", "every", "sigma", "rho", "n_samples")

    def compute() -> dict[str, Any]:
        options = {}
        if kind == "land":
            options = {name: settings[name] for name in ("sigma", "rho", "n_samples")}
        count, seed = settings["n_components"], settings["seed"]
        model = fit(make(kind, count, seed, **options), poses)
        sigma = settings["sigma"]
        if sigma == "auto":
            sigma = land.metrics.bandwidth.automatic_sigma(poses)
        nearest = KDTree(poses).query(model.means_)[0]
        numbers = describe(model) | {
            "percentiles": density_percentiles(model.means_, poses, sigma),
            "distances": nearest / spacing(poses),
        }
        if kind == "land":
            numbers["geodesics"] = _geodesics(model, poses)
        return numbers

    used = place | {name: settings[name] for name in names}
    return place | task.pieces.get(f"{clip}, D={dim}, {kind}", used, compute)


def _geodesics(model: land.LANDMixture, poses: np.ndarray) -> np.ndarray:
    """Geodesics from the means to some of the frames they are responsible for."""
    some = poses[:: max(1, len(poses) // _CURVES)]
    logs = land.log_map(model.metric_, model.means_[model.predict(some)], some)
    times = np.linspace(0, logs.curves.shape[1] - 1, _POINTS).round().astype(int)
    return np.round(logs.curves[logs.converged][:, times], 4)


def _name(clip: str) -> str:
    return _NAMES.get(clip, f"run ({clip})")


def _claim(rows: list[dict]) -> Claim:
    """Whether LAND's means are among the data and the GMM's are not."""
    inside = {
        kind: [min(row["percentiles"]) >= LOW for row in rows if row["model"] == kind]
        for kind in KINDS
    }
    ours, theirs = inside["land"], inside["gmm"]
    answer: Answer = "partly"
    if all(ours) and not any(theirs):
        answer = "holds"
    elif sum(ours) <= sum(theirs):
        answer = "fails"
    nearest = {
        kind: np.mean([row["distances"] for row in rows if row["model"] == kind])
        for kind in KINDS
    }
    measured = (
        f"Both means lie where data are (percentile {LOW:g} or more) in {sum(ours)} of "
        f"{len(ours)} fits of LAND and {sum(theirs)} of {len(theirs)} of the GMM. Mean "
        f"distance to the nearest frame: LAND {nearest['land']:.1f}, GMM "
        f"{nearest['gmm']:.1f} times that of frames to each other."
    )
    return Claim(*CLAIM, answer, measured)


def _draw(rows: list[dict], clips: dict[str, np.ndarray], settings: dict):
    """A column for each clip, a row for each dimension."""
    drawn, dims = settings["drawn"], settings["dimensions"]
    with sheet(len(dims), len(drawn), (3.0, 2.5)) as (figure, grid):
        for row in rows:
            if row["clip"] not in drawn:
                continue
            place = dims.index(row["dim"]), drawn.index(row["clip"])
            if row["dim"] == 3 and grid[place].name != "3d":
                grid[place].remove()
                index = place[0] * len(drawn) + place[1] + 1
                grid[place] = figure.add_subplot(
                    len(dims), len(drawn), index, projection="3d"
                )
            _panel(grid[place], row, clips[row["clip"]][:, : row["dim"]])
        for axes, dim in zip(grid, dims, strict=True):
            for ax, clip in zip(axes, drawn, strict=True):
                ax.set_title(f"{_name(clip)}, {dim} components")
        figure.legend(
            handles=handles(KINDS, ls="", ms=6), loc="outside lower center", ncols=2
        )
    return figure


def _panel(ax, row: dict, poses: np.ndarray) -> None:
    """Frames and geodesics once, with LAND's means; the GMM's means on top."""
    means = np.array(row["means"])
    if row["model"] == "land":
        curves = np.array(row["geodesics"])
        if row["dim"] == 2:
            plot_data(poses, ax, s=4, alpha=0.5)
            plot_geodesics(curves, ax, linewidths=0.6, alpha=0.6)
        else:
            ax.scatter(*poses.T, s=3, color="0.3", linewidths=0, alpha=0.5)
            for curve in curves:
                ax.plot(*curve.T, color="#0072B2", lw=0.6, alpha=0.6)
            ax.set_zticks([])
        bare(ax)
    extra = {"depthshade": False} if row["dim"] == 3 else {}
    mark_means(ax, means, row["model"], **extra)
