"""`land explore`: what the page is told, who is told nothing, and how it ends."""

import json
import re
import signal
import socket
import subprocess
import threading
from http.client import HTTPConnection

import numpy as np
import pandas as pd
import pytest

import land
from land.cli.console import Console
from land.cli.explore import Server
from land.cli.models import load_model
from land.plotting.explore import Explorer, SupersededError


@pytest.fixture(scope="module")
def server(scaled_file):
    """A server of a standardised mixture, in a thread of its own."""
    with Server(load_model(scaled_file, Console(quiet=True))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ask(server):
    """Send a request; returns the status and what came."""

    def send(path, method="GET", host=None, token=None):
        connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        path = f"/{server.token if token is None else token}/{path}"
        headers = {} if host is None else {"Host": host}
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        html = reply.headers["Content-Type"].startswith("text/html")
        return reply.status, content.decode() if html else json.loads(content)

    return send


@pytest.fixture(scope="module")
def explorer(server):
    return server.explorer


@pytest.fixture(scope="module")
def state(explorer):
    return explorer.answer("state", {})


def test_the_page_and_its_numbers(ask, in_units):
    status, page = ask("")
    assert status == 200
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in re.sub(r"<!--.*?-->", "", page)  # it needs no network
    status, state = ask("state")
    assert status == 200
    assert state["columns"] == ["across", "up"]
    # Rows of files are standardised; they come back in the units of the table.
    np.testing.assert_allclose(state["rows"], in_units, rtol=1e-9)
    place = "x={}&y={}".format(*state["means"][0])
    values = "sigma={sigma}&rho={rho}".format(**state["fitted"])
    status, found = ask(f"geodesics?{place}&{values}&settled=1")
    assert status == 200
    assert len(found["curves"]) + found["failed"] == len(in_units)
    assert found["milliseconds"] > 0.0


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ({"path": "", "token": "wrong"}, 403, "wrong token"),
        ({"path": "state", "token": ""}, 403, "wrong token"),
        ({"path": "state", "token": "t\u00f6ken"}, 403, "wrong token"),
        ({"path": "state", "host": "example.org"}, 403, "another host"),
        ({"path": "", "host": "127.0.0.1"}, 403, "another host"),
        ({"path": "nothing"}, 404, "nothing at this address"),
        ({"path": "stop"}, 404, "nothing at this address"),
        ({"path": "state?x=1"}, 400, "state takes nothing"),
        ({"path": "point?x=1"}, 400, "point takes x, y; got point with x"),
        ({"path": "point?x=1&y=a"}, 400, "could not convert"),
        ({"path": "point?x=1&y=nan"}, 400, "one finite number"),
        ({"path": "point?x=1&x=1&y=1"}, 400, "one finite number"),
        ({"path": "point?x=1e9&y=0"}, 400, "x must be from"),
        ({"path": "shading?sigma=1e-9&rho=1"}, 400, "sigma must be from"),
        ({"path": "point?x"}, 400, "bad query"),
        ({"path": "state", "method": "POST"}, 501, "Unsupported"),
    ],
)
def test_what_is_refused_does_not_stop_the_server(ask, how, status, words):
    if not how.get("token", "").isascii():
        how = how | {"token": "t%C3%B6ken"}
    found, content = ask(**how)
    assert (found, words in content["error"]) == (status, True), content
    assert ask("state")[0] == 200


@pytest.mark.parametrize("request_", [b"\r\n\r\n", b"GET", b"GET //[ HTTP/1.1\r\n\r\n"])
def test_what_is_no_request(server, ask, request_):
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as line:
        line.sendall(request_ + b"\r\n\r\n")
        line.recv(100)
    assert ask("state")[0] == 200


def test_an_unexpected_error_is_reported(server, ask, monkeypatch):
    def fails(**numbers):
        raise KeyError("oops")

    monkeypatch.setattr(server.explorer, "point", fails)
    monkeypatch.setattr(
        "inspect.signature", lambda _: type("S", (), {"parameters": {}})
    )
    status, content = ask("point")
    assert (status, "unexpected KeyError" in content["error"]) == (500, True)


def test_it_listens_on_this_machine_only(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert len(server.token) > 40


def test_geodesics_are_those_of_the_model(explorer, state, scaled):
    model, center, scale = scaled
    (x, y), fitted = state["means"][1], state["fitted"]
    anew = explorer.geodesics(x, y, **fitted, settled=1.0)
    ends = (np.asarray(anew["curves"])[:, -1] - center) / scale
    logs = land.log_map(model.metric_, model.means_[1], ends)
    middles = (anew["curves"][:, 12] - center) / scale
    np.testing.assert_allclose(middles, logs.curves[:, 16], atol=1e-4)
    # The fan: rays of equal length in the metric.
    tips = (anew["fan"][:, -1] - center) / scale
    lengths = land.log_map(model.metric_, model.means_[1], tips).lengths
    np.testing.assert_allclose(lengths.max(), anew["radius"], rtol=1e-3)
    # From the last ones, after a short way.
    explorer.geodesics(x + 0.02 * scale[0], y, **fitted, settled=0.0)
    warm = explorer.geodesics(x, y, **fitted, settled=0.0)
    difference = np.abs(warm["curves"][:, 12] - anew["curves"][:, 12]) / scale
    assert difference.max() < 0.02


def test_sigma_and_rho_change_geodesics_and_shading(explorer, state):
    (x, y), fitted = state["means"][0], state["fitted"]
    other = {"sigma": 2.0 * fitted["sigma"], "rho": 0.1 * fitted["rho"]}
    one = explorer.geodesics(x, y, **fitted, settled=1.0)
    two = explorer.geodesics(x, y, **other, settled=0.0)
    assert np.abs(one["curves"][:, 12] - two["curves"][:, 12]).max() > 0.1
    one, two = explorer.shading(**fitted), explorer.shading(**other)
    assert len(one["heights"]) == one["size"] ** 2
    assert np.abs(one["heights"] - two["heights"]).max() > 0.1


def test_points_are_scored_by_the_model(explorer, state, scaled):
    model, center, scale = scaled
    x, y = state["rows"][0]
    found = explorer.point(x, y)
    row = (np.array([[x, y]]) - center) / scale
    expected = model.score_samples(row)[0] - np.log(scale).sum()
    assert found["density"] == pytest.approx(expected, rel=1e-6)
    assert found["probability"] == pytest.approx(model.predict_proba(row).max())
    assert found["cluster"] == model.predict(row)[0]


def test_the_score_is_that_of_a_quick_fit(explorer, state, scaled):
    found = explorer.held_out(**state["fitted"])
    assert (found["fitted_to"], found["held_out"]) == (32, 8)
    model, center, scale = scaled
    held_out = found["numbers"] - 1
    rest = np.setdiff1d(np.arange(40), held_out)
    rows = (np.asarray(state["rows"]) - center) / scale
    other = land.LANDMixture(
        2,
        sigma=model.sigma_,
        rho=0.8 * model.rho_,
        method="least_squares",
        n_samples=300,
        tol=0.01,
        random_state=0,
    )
    expected = other.fit(rows[rest]).score(rows[held_out]) - np.log(scale).sum()
    assert found["score"] == pytest.approx(expected, abs=0.1)


def test_a_later_question_takes_the_place_of_a_fit(explorer, state):
    found = []

    def first():
        try:
            explorer.held_out(**state["fitted"])
        except SupersededError as error:
            found.append(error)

    with explorer._fitting:  # as if another fit were under way
        thread = threading.Thread(target=first)
        thread.start()
        while explorer._wanted is None:
            pass
        explorer.stop()
    thread.join()
    assert len(found) == 1


def test_names_of_columns_are_no_news(arc_points, tmp_path, recwarn):
    """A model of a data frame is asked about arrays."""
    frame = pd.DataFrame(arc_points, columns=["length", "width"])
    model = land.LAND(sigma=0.5, method="least_squares", n_samples=200).fit(frame)
    model.save(tmp_path / "named.land")
    stored = load_model(tmp_path / "named.land", Console(quiet=True))
    explorer = Explorer(stored.scaled, stored.columns)
    explorer.state()
    assert explorer.point(0.0, 1.5)["cluster"] == 0
    assert [str(each.message) for each in recwarn] == []


def test_which_models_cannot_be_explored(fails, one_file, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    three = land.LAND(sigma=1.0, method="least_squares", n_samples=200).fit(X)
    three.save(tmp_path / "three.land")
    assert "two columns can be explored, got 3" in fails(
        "explore", tmp_path / "three.land"
    )
    flat = land.LAND(metric=land.metrics.EuclideanMetric(2), n_samples=200)
    flat.fit(X[:, :2]).save(tmp_path / "flat.land")
    assert "space is flat" in fails("explore", tmp_path / "flat.land")
    clusters = land.RiemannianKMeans(2, random_state=0).fit(X[:, :2])
    clusters.save(tmp_path / "clusters.land")
    assert "no density" in fails("explore", tmp_path / "clusters.land")
    assert "port 99999" in fails("explore", one_file, "--port", 99999)


def test_ctrl_c_ends_it(command, environment, one_file):
    process = subprocess.Popen(
        [*command, "explore", str(one_file), "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = json.loads(process.stdout.readline())["address"]
    host, token = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/([\w-]+)/", address).groups()
    connection = HTTPConnection(host, timeout=60)
    connection.request("GET", f"/{token}/state")
    state = json.loads(connection.getresponse().read())
    assert state["columns"] == ["x1", "x2"]
    # A fit is under way.
    values = "sigma={sigma}&rho={rho}".format(**state["fitted"])
    connection.request("GET", f"/{token}/held_out?{values}")
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 0, messages
    assert messages.endswith("ended\n")
    connection.close()
