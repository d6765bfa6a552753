"""Whole figures of a model in the units of its data, and a page of them for a report.

The page is one HTML file that needs no network.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from importlib.metadata import version
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from land._validation import check_points
from land.estimators.files import replacing
from land.estimators.held_out import LEAST_ROWS, Comparison, compare, mean_and_error
from land.estimators.standardized import parts_of
from land.metrics import EuclideanMetric
from land.plotting.components import (
    MOST_SHOWN,
    plot_covariance,
    plot_history,
    plot_learning,
    plot_means,
    plot_pairs,
    plot_responsibilities,
    plot_view3d,
)
from land.plotting.plane import plot_data, plot_density, plot_metric
from land.plotting.sheet import (
    COLORS,
    LEGEND,
    Array,
    check_dimensions,
    component_legend,
    sheet,
)

# Ratio of extents from which a figure to scale would be a thin line.
_MOST_UNEQUAL = 8.0
# Points of a figure at most: more make the file large, and hide each other.
_MOST_POINTS = 500
# Columns at most that the page draws in pairs.
_SHOWN = 3
_PACKAGES = ("land", "numpy", "scipy", "scikit-learn", "jax", "matplotlib")
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; --soft: #8882; --line: #8888; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto;
  padding: 1rem; }}
h1, pre {{ overflow-wrap: anywhere; }}
h2 {{ margin-top: 2rem; border-bottom: 1px solid var(--line); }}
.verdict {{ background: var(--soft); border-left: .3rem solid #0072B2;
  padding: .8rem 1rem; font-size: 1.1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }}
thead th {{ border-bottom: 1px solid var(--line); }}
figure {{ margin: 1rem 0; break-inside: avoid; }}
figure svg {{ background: #fff; width: 100%; height: auto; max-height: 40rem; }}
figcaption, .note {{ font-size: .9rem; opacity: .85; }}
pre {{ background: var(--soft); padding: .6rem; white-space: pre-wrap; }}
@media print {{ body {{ max-width: none; }} figure svg {{ max-height: 12cm; }} }}
</style></head>
<body>
<h1>{title}</h1><p class="verdict">{verdict}</p>
{body}
</body></html>
"""


class View(NamedTuple):
    """A model in the columns and units of its data.

    Its coordinates are ``(x - center) / scale`` for a row x of the data.
    """

    model: Any
    columns: Sequence[str]
    center: Array
    scale: Array


# Figures.


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's name."""
    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], dpi=200, bbox_inches="tight")


def model_figure(view: View, kind: str, grid: int = 60, points: Any = None) -> Any:
    """The figure of a kind, see `land plot`, with points in the model's coordinates.

    By default those that the metric was learned from. A ValueError if the model has no
    figure of this kind.
    """
    model, dim = view.model, len(view.columns)
    points = model.metric_.landmarks if points is None else points
    if kind == "history":
        return _single_figure(plot_history, model)
    if points is None and (kind != "density" or dim > 2):
        raise ValueError(
            "the model's space is flat, so its file has no data to draw; use --kind "
            "density for two columns, --kind history, or land.plotting"
        )
    if kind == "density" and dim == 1:
        return _line_figure(view, points, grid)
    if kind == "view3d":
        return _view3d_figure(view, points)
    if not hasattr(model, "score_samples") and kind != "metric":
        kind = "pairs"  # clusters have no more to show
    if kind == "pairs":
        return _pairs_figure(view, points, range(min(dim, MOST_SHOWN)))
    check_dimensions(dim, 2)
    return _plane_figure(view, kind, points, grid)


def _single_figure(plot: Any, model: Any) -> Any:
    """What a function of `land.plotting` draws of a model, by itself."""
    with sheet() as (figure, axes):
        plot(model, axes[0, 0])
    return figure


def _line_figure(view: View, points: Any, grid: int) -> Any:
    """The density of a model of one column, over a histogram of its data."""
    with sheet() as (figure, axes):
        ax = axes[0, 0]
        if points is not None:
            shape: Any = {"bins": "auto", "density": True, "color": "0.85"}
            ax.hist(points[:, 0], **shape, label="data")
        plot_density(view.model, ax, grid=grid)
        figure.legend(**LEGEND)
        _label(view, ax.xaxis)
        _mark(ax.yaxis, 0.0, 1.0 / view.scale[0])  # lower in wider units
    return figure


def _plane_figure(view: View, kind: str, points: Any, grid: int) -> Any:
    """The figure of a model of two columns; of a flat one there are no points."""
    model = view.model
    width, height = (1.0, 1.0) if points is None else np.ptp(points, axis=0)
    unequal = max(width, height) > _MOST_UNEQUAL * min(width, height)
    ratio = 1.0 if unequal else np.clip(height / width, 0.5, 1.0)
    with sheet(1, 1, (5.0, 1.0 + 4.0 * ratio)) as (figure, axes):
        ax = axes[0, 0]
        dots = points is not None and kind != "responsibilities"
        if dots:
            plot_data(points, ax, s=6, alpha=0.5)
        if kind == "responsibilities":
            plot_responsibilities(model, points, ax)
        elif kind == "metric":
            shading = plot_metric(model.metric_, ax)
            words = r"length of a step, $\log\sqrt{|M(x)|}$"
            figure.colorbar(shading, ax=ax, label=words, shrink=0.8)
        else:
            plot_density(model, ax, grid=grid, colorbar=True)
            plot_covariance(model, ax, n_std=1.0)
        plot_means(model, ax)
        component_legend(figure, model, 1.0 if kind == "density" else None, data=dots)
        if unequal:
            ax.set_aspect("auto")
        _label(view, ax.xaxis, ax.yaxis)
    return figure


def _pairs_figure(view: View, points: Array, shown: Sequence[int]) -> Any:
    """A panel for each pair of the columns that are shown."""
    with sheet() as (figure, axes):
        axes[0, 0].remove()
        panels = plot_pairs(view.model, points, figure, dimensions=shown)
        for ax, pair in zip(panels, combinations(shown, 2), strict=True):
            _label(view, ax.xaxis, ax.yaxis, dimensions=pair)
    return figure


def _view3d_figure(view: View, points: Array) -> Any:
    """The first three columns in space."""
    with sheet(subplot_kw={"projection": "3d"}) as (figure, axes):
        ax = plot_view3d(view.model, points, axes[0, 0])
        _label(view, ax.xaxis, ax.yaxis, ax.zaxis)
    return figure


def _samples_figure(view: View, X: Array, seed: int) -> Any:
    """Data on the left, as many draws on the right; a row for each pair of columns."""
    drawn = view.model.sample(len(X), seed)[0] * view.scale + view.center
    first = range(min(X.shape[1], _SHOWN))
    pairs: list = list(combinations(first, 2)) or [(0,)]
    with sheet(len(pairs), 2, sharex="row", sharey="row") as (figure, axes):
        for panels, pair in zip(axes, pairs, strict=True):
            for ax, rows, color in zip(panels, (X, drawn), COLORS, strict=False):
                if len(pair) == 1:
                    ax.hist(rows[:, 0], bins="auto", density=True, color=color)
                else:
                    ax.scatter(*rows[:, pair].T, s=6, color=color, linewidths=0)
                    ax.set_ylabel(view.columns[pair[1]], parse_math=False)
                ax.set_xlabel(view.columns[pair[0]], parse_math=False)
                ax.label_outer()
        axes[0, 0].set_title("data")
        axes[0, 1].set_title("samples of the model")
    return figure


def _label(view: View, *axes: Any, dimensions: Sequence[int] = (0, 1, 2)) -> None:
    """Name axes and mark them at round numbers in the units of the data."""
    for axis, d in zip(axes, dimensions, strict=False):
        axis.set_label_text(view.columns[d], parse_math=False)  # "$" is a dollar
        _mark(axis, view.center[d], view.scale[d])


def _mark(axis: Any, center: float, scale: float) -> None:
    """Ticks at round numbers of ``center + scale * x``, where that is not x."""
    if (center, scale) == (0.0, 1.0):
        return
    low, high = center + scale * axis.get_view_interval()
    marks = axis.get_major_locator().tick_values(low, high)
    marks = marks[(marks >= low) & (marks <= high)]
    axis.set_ticks((marks - center) / scale, labels=[f"{m:.6g}" for m in marks])


# The page.


def report(
    model: Any,
    path: str | os.PathLike[str],
    data: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    rows: Sequence[int] | None = None,
    title: str = "LAND report",
    notes: Sequence[str] = (),
    command: str | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> str:
    """Write one HTML page about a fitted model, and say whether geometry pays.

    The page has a summary of the data, a comparison with Gaussian mixtures and a kernel
    density estimate, figures, the health of the fit and what it takes to repeat it. For
    the comparison all models are fitted to 80 % of the rows, so that this takes about
    as long as the fit did. Returns the sentence that says what the comparison means.

    Parameters
    ----------
    model : LAND, LANDMixture or Standardized
        A fitted model.
    path : path-like
        The file to write.
    data : array_like of shape (N, D)
        The rows that the model was fitted to, 25 at least.
    names, rows : sequences, optional
        Names of the columns, by default those of the model or of a data frame; and
        numbers of the rows, shown where the mouse is over a point, by default from one.
    title, notes : str and sequence of str
        Title of the page, and what else is to be said about the data.
    command : str, optional
        What repeats the report; by default an expression in Python.
    random_state : int
        Seed of the held-out rows, the rivals and the samples.
    progress : callable, optional
        Called with a few words when something new begins.

    Examples
    --------
    >>> import land, pathlib, tempfile
    >>> X = land.datasets.make_half_ellipse(60, random_state=0)
    >>> model = land.LAND(metric=land.metrics.EuclideanMetric(2), n_samples=200)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> land.report(model.fit(X), file, X)
    'A Gaussian mixture is as good and far quicker...'
    """
    inner = getattr(model, "estimator_", model)
    if not hasattr(inner, "score_samples"):
        raise ValueError(
            f"model must be a LAND or a LANDMixture, got {type(inner).__name__}"
        )
    check_is_fitted(model)
    dim, say = model.n_features_in_, progress or (lambda _: None)
    X = check_points("data", data, dim, ndim=2)
    if len(X) < LEAST_ROWS:
        raise ValueError(f"data must have {LEAST_ROWS} rows at least, got {len(X)}")
    if names is None:
        numbered = [f"x{k + 1}" for k in range(dim)]
        names = getattr(model, "feature_names_in_", getattr(data, "columns", numbered))
    columns = [str(name) for name in names]
    numbers = np.arange(1, len(X) + 1) if rows is None else np.asarray(rows)
    if len(columns) != dim or len(numbers) != len(X):
        raise ValueError(
            f"names and rows must have {dim} and {len(X)} entries, got {len(columns)} "
            f"and {len(numbers)}"
        )
    center = getattr(model, "center_", np.zeros(dim))
    view = View(inner, columns, center, getattr(model, "scale_", np.ones(dim)))
    comparison = compare(model, X, random_state, say)
    body = [
        *_data_section(X, columns, notes),
        *_comparison_section(comparison, inner),
        *_model_section(view),
        "<h2>Figures</h2>",
    ]
    kept = np.random.default_rng(random_state).permutation(len(X))[:_MOST_POINTS]
    kept.sort()
    figures = _figures(view, X[kept], numbers[kept], random_state)
    for number, (caption, draw, hover) in enumerate(figures):
        say(f"drawing: {caption}")
        body.append(_figure(number, caption, draw, hover))
    body += _settings_section(model, command, random_state)
    words = {"title": escape(title), "verdict": escape(comparison.sentence)}
    with replacing(Path(path)) as stream:
        stream.write(_PAGE.format(**words, body="\n".join(body)).encode())
    return comparison.sentence


def _data_section(X: Array, columns: list[str], notes: Sequence[str]) -> Iterator[str]:
    yield f"<h2>Data</h2><p>{len(X)} rows, {len(columns)} columns.</p>"
    kinds = (np.min, np.median, np.max, np.mean, np.std)
    numbers = [[f"{kind(column):.5g}" for kind in kinds] for column in X.T]
    header = ("column", "smallest", "median", "largest", "mean", "standard deviation")
    yield _table(header, [[name, *n] for name, n in zip(columns, numbers, strict=True)])
    yield _list(notes)


def _comparison_section(comparison: Comparison, model: Any) -> Iterator[str]:
    ours, *_ = comparison.entries
    rows: list[list] = []
    for entry in comparison.entries:
        ahead = (
            "" if entry is ours else "{:+.3f} ± {:.3f}".format(*entry.ahead_of(ours))
        )
        shown = "{:.3f} ± {:.3f}".format(*mean_and_error(entry.values))
        rows.append([entry.name, entry.note, shown, ahead, f"{entry.seconds:.2g} s"])
    header = ("model", "", "log density", "ahead of LAND", "fit")
    yield f"<h2>Comparison</h2>{_table(header, rows)}"
    yield (
        f'<p class="note">Mean log density of {len(ours.values)} rows that were held '
        f"out, ± its standard error; higher is better. All models were fitted to the "
        f"other {comparison.n_fitted} rows, Gaussian mixtures with full covariances. "
        "Differences are taken row by row.</p>"
    )
    failed = int(np.isnan(ours.values).sum())
    lines = []
    if failed:
        lines.append(f"{failed} held-out rows could not be scored by LAND.")
    if getattr(model.metric, "landmarks", None) is not None:
        lines.append("The metric was given: it may have seen the held-out rows.")
    if model.volume == "paper":
        lines.append('Densities of volume="paper" need not integrate to one.')
    yield _list(lines)


def _model_section(view: View) -> Iterator[str]:
    weights, means, covariances = parts_of(view.model).in_units(view.center, view.scale)
    spreads = np.sqrt(np.einsum("kdd->kd", np.asarray(covariances)))
    rows = []
    for k, at in enumerate(zip(means, spreads, strict=True)):
        cells = [f"{m:.4g} ± {s:.2g}" for m, s in zip(*at, strict=True)]
        rows.append([k, f"{weights[k]:.3f}", *cells])
    yield f"<h2>Model</h2>{_table(('component', 'weight', *view.columns), rows)}"
    yield '<p class="note">Mean ± standard deviation, as measured at the mean.</p>'
    yield f"<p>{escape('; '.join(_facts(view)))}.</p>"
    yield "<h2>Health of the fit</h2>"
    yield _list(view.model.health_) or "<p>Nothing to object to.</p>"


def _facts(view: View) -> Iterator[str]:
    """The metric, and how the fit has ended."""
    model = view.model
    if isinstance(model.metric_, EuclideanMetric):
        yield "Flat metric"
    elif model.sigma_ is None:
        yield type(model.metric_).__name__
    else:
        units = " in standardised units" * bool(np.any(view.scale != 1.0))
        yield f"Sigma {model.sigma_:.4g}, rho {model.rho_:.4g}{units}"
    if np.isfinite(model.geometry_gain_):
        yield f"the curved metric gains {model.geometry_gain_:+.2g} in log density"
    state = "converged" if model.converged_ else "not converged"
    yield f"{state} in step {model.n_iter_}"
    yield f"{model.n_log_maps_} geodesics, {model.n_failed_log_maps_} failed at the end"


def _settings_section(model: Any, command: str | None, seed: int) -> Iterator[str]:
    fresh = clone(model)
    inner = getattr(fresh, "estimator", fresh).set_params(callback=None)
    settings = [[name, value] for name, value in inner.get_params().items()]
    yield f"<h2>Settings</h2>{_table(('parameter', 'value'), settings)}"
    versions = [f"{name} {version(name)}" for name in _PACKAGES]
    yield f"<p>Python {platform.python_version()}, {escape(', '.join(versions))}.</p>"
    call = f"land.report({fresh!r}.fit(data), path, data, random_state={seed})"
    yield f"<p>To repeat it (seed {seed}):</p><pre>{escape(command or call)}</pre>"


def _figures(view: View, X: Array, numbers: Any, seed: int) -> Iterator[tuple]:
    """Caption, what draws it, and words for each of the points."""
    model, points = view.model, (X - view.center) / view.scale
    dim, rows = X.shape[1], f"{len(X)} rows of the data"
    if dim > 2:
        shown = range(_SHOWN)
        words = f"{rows} in pairs of the first {_SHOWN} columns"
        draw = partial(_pairs_figure, view, points, shown)
        yield f"Clusters, means and covariances of {words}", draw, None
    else:
        draw = partial(model_figure, view, "density", points=points)
        yield f"Density, means and covariances over {rows}", draw, None
    if dim == 2:
        count = len(parts_of(model).means)
        shares = model.predict_proba(points) if count > 1 else np.ones((len(X), 1))
        hover = [
            f"row {row}, component {each.argmax()}, probability {each.max():.2f}"
            for row, each in zip(numbers, shares, strict=True)
        ]
        draw = partial(model_figure, view, "responsibilities", points=points)
        yield f"Geodesics from the means to {rows}, by component", draw, hover
    samples = partial(_samples_figure, view, X, seed)
    yield f"Samples of the model beside {rows}", samples, None
    history = partial(model_figure, view, "history")
    yield "Mean negative log density against the steps of the fit", history, None
    if getattr(model, "learning_", None):
        learning = partial(_single_figure, plot_learning, model)
        yield "Held-out log density of the sigmas and rhos tried", learning, None


def _figure(number: int, caption: str, draw: Callable[[], Any], hover: Any) -> str:
    """A figure as SVG within the page; with `hover`, words over its first points."""
    text = f"<figcaption>{escape(caption)}</figcaption>"
    # Text stays text: small, and read aloud. The salt makes the file reproducible.
    fonts: Any = {"svg.fonttype": "none", "svg.hashsalt": "land"}
    stream = StringIO()
    try:
        with matplotlib.rc_context(fonts):
            figure = draw()
            if hover is not None:
                figure.axes[0].collections[0].set_gid("points")
            options: Any = {"metadata": {"Date": None}, "bbox_inches": "tight"}
            figure.savefig(stream, format="svg", **options)
    except ValueError as error:  # a figure less is better than no page
        return f"<figure><p>Not drawn: {escape(str(error))}.</p>{text}</figure>"
    svg = stream.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    if hover is not None:
        svg = _with_titles(svg, iter(hover))
    # Names must be unique within the page.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{number}-", svg)
    label = f'<svg role="img" aria-label="{escape(caption)}"'
    return f"<figure>{svg.replace('<svg', label, 1)}{text}</figure>"


def _with_titles(svg: str, titles: Iterator[str]) -> str:
    """Words that appear over each of the points."""
    head, found, points = svg.partition('<g id="points">')

    def titled(use: re.Match[str]) -> str:
        words = next(titles, None)
        title = f"{use[1]}><title>{escape(words or '')}</title></use>"
        return use[0] if words is None else title

    return head + found + re.sub(r"(<use [^>]*)/>", titled, points)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
