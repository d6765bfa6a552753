"""A page about a model: one HTML file that needs no network."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from importlib.metadata import version
from importlib.resources import files
from io import StringIO
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
from land.estimators.standardized import (
    column_names,
    in_units,
    parts_in_units,
    responsibilities,
)
from land.metrics import EuclideanMetric
from land.plotting.figures import (
    MOST_PAIRED,
    View,
    live_figure,
    model_figure,
    pairs_figure,
    samples_figure,
    single_figure,
)
from land.plotting.fits import plot_learning
from land.plotting.sheet import Array, component_colors

# Points of a figure at most: more make the file large, and hide each other.
_MOST_POINTS = 500
# Points of width from which a figure is not to be shrunk to the width of a phone.
_BROAD = 500.0
# Numbers and their errors stay on one line.
_TOGETHER = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
_PACKAGES = ("land", "numpy", "scipy", "scikit-learn", "jax", "matplotlib")
_LEGEND = (
    '<button type="button" data-component="{0}" aria-pressed="false">'
    '<span class="swatch" style="background:{1}"></span> component {0}</button>'
)


class Figure(NamedTuple):
    """A figure of the page, and what draws it.

    That of a live one marks points with the words of `hover`, one for each of them, and
    has a legend of the components; `owners` are the components of the points.
    """

    caption: str
    draw: Callable[[], Any]
    hover: Sequence[str] = ()
    owners: Sequence[int] = ()
    components: int = 0


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
        Seed of the held-out rows, the other models and the samples.
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
    usual = column_names(model, data, dim=dim)
    columns = usual if names is None else [str(name) for name in names]
    numbers = np.arange(1, len(X) + 1) if rows is None else np.asarray(rows)
    if len(columns) != dim or len(numbers) != len(X):
        raise ValueError(
            f"names and rows must have {dim} and {len(X)} entries, got {len(columns)} "
            f"and {len(numbers)}"
        )
    view = View(in_units(model), columns)
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
    for number, each in enumerate(figures):
        say(f"drawing: {each.caption}")
        body.append(_drawn(number, each))
    body += _settings_section(model, command, random_state)
    words = {"title": escape(title), "verdict": escape(comparison.sentence)}
    words["body"] = "\n".join(body)
    page = files("land.plotting").joinpath("report.html").read_text("utf-8")
    page = re.sub("@(title|verdict|body)@", lambda found: words[found[1]], page)
    with replacing(Path(path)) as stream:
        stream.write(page.encode())
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
            "" if entry is ours else "{:+z.3f} ± {:.3f}".format(*entry.ahead_of(ours))
        )
        shown = "{:.3f} ± {:.3f}".format(*mean_and_error(entry.values))
        rows.append([entry.name, entry.note, shown, ahead, f"{entry.seconds:.2g}"])
    header = ("model", "", "log density", "ahead of LAND", "seconds")
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
    weights, means, covariances = parts_in_units(view.scaled)
    spreads = np.sqrt(np.einsum("kdd->kd", np.asarray(covariances)))
    rows = []
    for k, at in enumerate(zip(means, spreads, strict=True)):
        cells = [f"{m:.4g} ± {s:.2g}" for m, s in zip(*at, strict=True)]
        rows.append([k, f"{weights[k]:.3f}", *cells])
    table = _table(("component", "weight", *view.columns), rows)
    if len(view.columns) == 2:  # there is a live figure
        button = '<td><button type="button" data-component="{0}">{0}</button></td>'
        for k in range(len(weights)):
            table = table.replace(f"<tr><td>{k}</td>", "<tr>" + button.format(k), 1)
    yield f"<h2>Model</h2>{table}"
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
        units = " in standardised units" * bool(np.any(view.scaled.scale_ != 1.0))
        yield f"Sigma {model.sigma_:.4g}, rho {model.rho_:.4g}{units}"
    gain = model.geometry_gain_
    if np.isfinite(gain):
        what = "gains" if gain >= 0.0 else "loses"
        yield f"the curved metric {what} {abs(gain):.2g} in log density"
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


def _figures(view: View, X: Array, numbers: Any, seed: int) -> Iterator[Figure]:
    """What there is to draw."""
    model, points = view.model, view.in_model(X)
    dim, rows = X.shape[1], f"{len(X)} rows of the data"
    if dim > 2:
        shown = range(MOST_PAIRED)
        words = f"{rows} in pairs of the first {MOST_PAIRED} columns"
        draw = partial(pairs_figure, view, points, shown)
        yield Figure(f"Clusters, means and covariances of {words}", draw)
    else:
        draw = partial(model_figure, view, "density", points=points)
        yield Figure(f"Density, means and covariances over {rows}", draw)
    if dim == 2:
        yield _live(view, points, numbers, rows)
    samples = partial(samples_figure, view, X, seed)
    yield Figure(f"Samples of the model beside {rows}", samples)
    if len(model.history_) > 2:  # else there is nothing to see
        history = partial(model_figure, view, "history")
        yield Figure("Mean negative log density against the steps of the fit", history)
    if getattr(model, "learning_", None):
        learning = partial(single_figure, plot_learning, model)
        yield Figure("Held-out log density of the sigmas and rhos tried", learning)


def _live(view: View, points: Array, numbers: Any, rows: str) -> Figure:
    """Geodesics, with the row and the component that somebody points at."""
    shares = responsibilities(view.model, points)
    owners = shares.argmax(axis=1).tolist()
    hover = [
        f"row {row}, component {k}, probability {share:.2f}"
        for row, k, share in zip(numbers, owners, shares.max(axis=1), strict=True)
    ]
    caption = f"Geodesics from the means to {rows}, by component"
    draw = partial(live_figure, view, points, owners)
    return Figure(caption, draw, hover, owners, shares.shape[1])


def _drawn(number: int, figure: Figure) -> str:
    """A figure as SVG within the page."""
    caption = escape(figure.caption)
    text = f"<figcaption>{caption}</figcaption>"
    # Text stays text: small, and read aloud. The salt makes the file reproducible.
    fonts: Any = {"svg.fonttype": "none", "svg.hashsalt": "land"}
    stream = StringIO()
    try:
        with matplotlib.rc_context(fonts):
            options: Any = {"metadata": {"Date": None}, "bbox_inches": "tight"}
            figure.draw().savefig(stream, format="svg", **options)
    except ValueError as error:  # a figure less is better than no page
        return f"<figure><p>Not drawn: {escape(str(error))}.</p>{text}</figure>"
    svg = stream.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    if figure.hover:
        svg = _with_titles(svg, iter(figure.hover))
    # Names must be unique within the page.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{number}-", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
    if not figure.hover:
        width = re.search(r'width="([\d.]+)pt"', svg)
        broad = ' class="broad"' * (width is not None and float(width[1]) > _BROAD)
        return f"<figure{broad}>{svg}{text}</figure>"
    hint = "Point at a row, or choose a component, to see its geodesics alone."
    colors = enumerate(component_colors(figure.components))
    legend = " ".join(_LEGEND.format(k, color) for k, color in colors)
    owners = " ".join(map(str, figure.owners))
    return (
        f'<figure class="live" data-owners="{owners}">{svg}<p>{legend}</p>'
        f'<p class="note hint" aria-live="polite">{hint}</p>{text}</figure>'
    )


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
        f"<tbody>{body.replace(' ± ', _TOGETHER)}</tbody></table></div>"
    )


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
