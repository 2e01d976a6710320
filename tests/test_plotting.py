"""Figures: every line is drawn, and can be told from every other."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from dpbandits.plotting import COLOURS, DASHES, Line, Panel, draw_lines, draw_panels, looks, new_figure, save_figure
from dpbandits.policies import lookup
from dpbandits.simulation import simulate

matplotlib.use("Agg")

X = np.geomspace(1.0, 1000.0, 20)


def lines(count: int, **more: Any) -> list[Line]:
    return [Line(f"line {number}", X, X * (number + 1), **more) for number in range(count)]


def look_of(drawn: Any) -> tuple[Any, ...]:
    """Colour and dashes, as they are drawn."""
    return matplotlib.colors.to_hex(drawn.get_color()), drawn._unscaled_dash_pattern


@pytest.mark.parametrize("count", [2, 9, 12, len(COLOURS) * len(DASHES)])
def test_many_lines_are_all_drawn_and_all_look_different(count: int) -> None:
    _, (ax,) = new_figure(1, 1, (5.0, 4.0))
    draw_lines(ax, lines(count))
    drawn = ax.get_lines()
    assert [str(line.get_label()) for line in drawn] == [f"line {number}" for number in range(count)]
    for number, line in enumerate(drawn):
        assert np.array_equal(np.asarray(line.get_ydata()), X * (number + 1))
    looks = [look_of(line) for line in drawn]
    assert len({repr(look) for look in looks}) == count, "two lines look the same"


def test_twelve_lines_stand_in_the_files(tmp_path: Path) -> None:
    panel = Panel("many", "Many lines", lines(12))
    paths = draw_panels([panel], tmp_path / "figure", "caption")
    assert [path.name for path in paths] == ["figure.svg", "figure.png", "figure.pdf"]
    vectors = paths[0].read_text()
    for number in range(12):
        assert f">line {number}</text>" in vectors, "a line is missing in the legend, or its text is an outline"
    curves = [part for part in vectors.split("<path ") if "stroke-width: 1.4" in part]
    styles = {part.split('style="')[1].split('"')[0] for part in curves}
    assert len(styles) == 12
    assert len(curves) == 24, "each line, and its place in the legend"


def test_figures_are_fit_for_print(tmp_path: Path) -> None:
    svg, png, pdf = draw_panels([Panel("one", "One panel", lines(2))], tmp_path / "figure", "caption")
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert (width, height) == (round(5.2 * 300), round(3.8 * 300))
    assert "<title>figure</title>" in svg.read_text()
    assert b"/Type /Page" in pdf.read_bytes()


def test_a_label_looks_the_same_in_every_panel() -> None:
    one = Panel("a", "A", [Line("LDP-UCB-L", X, X), Line("UCB1", X, X)])
    two = Panel("b", "B", [Line("UCB1", X, X), Line("limit", X, X, style="dashed", like="LDP-UCB-L"), *lines(9)])
    chosen = looks([one, two])
    _, (left, right) = new_figure(1, 2, (5.0, 4.0))
    draw_lines(left, one.lines, chosen)
    draw_lines(right, two.lines, chosen)
    drawn = {str(line.get_label()): look_of(line) for line in right.get_lines()}
    assert {str(line.get_label()): look_of(line) for line in left.get_lines()}["UCB1"] == drawn["UCB1"]
    assert drawn["limit"][0] == look_of(left.get_lines()[0])[0], "a bound has the colour of its policy"
    assert len({repr(look) for look in drawn.values()}) == 11, "two lines look the same"


def test_a_line_with_a_colour_of_its_own_takes_no_turn() -> None:
    _, (ax,) = new_figure(1, 1, (5.0, 4.0))
    draw_lines(ax, [Line("own", X, X, colour="#123456"), *lines(2), Line("bound", X, X, style="dashed")])
    colours = [look_of(line)[0] for line in ax.get_lines()]
    assert colours == ["#123456", COLOURS[0].lower(), COLOURS[1].lower(), COLOURS[2].lower()]
    assert look_of(ax.get_lines()[3])[1][1] is not None, "a dashed line is solid"


def test_bands_and_points_are_drawn() -> None:
    _, (ax,) = new_figure(1, 1, (5.0, 4.0))
    band = Line("band", X, X, X - 1.0, X + 1.0)
    points = Line("points", X, X, X - 1.0, X + 2.0, style="points")
    draw_lines(ax, [band, points])
    assert len(ax.collections) == 2, "one band, and the error bars"
    vertices = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
    assert vertices[:, 1].min() >= X[0] / 100, "a band that reaches 0 would hide the curve on a logarithmic axis"


def test_the_same_data_give_the_same_files(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        figure, (ax,) = new_figure(1, 1, (5.0, 4.0))
        draw_lines(ax, lines(3))
        contents.append([path.read_bytes() for path in save_figure(figure, tmp_path / name / "figure")])
    assert contents[0] == contents[1]


def test_an_odd_number_of_panels_leaves_no_empty_axes(tmp_path: Path) -> None:
    panels = [Panel(f"p{number}", f"Panel {number}", lines(2), band="two standard errors") for number in range(3)]
    vectors = draw_panels(panels, tmp_path / "figure", "seed 0")[0].read_text()
    assert [f">Panel {number}</text>" in vectors for number in range(3)] == [True] * 3
    assert vectors.count('id="matplotlib.axis_') == 6
    assert ">seed 0; bands: two standard errors</text>" in vectors


def test_a_curve_of_few_points_has_a_tick_at_each(tmp_path: Path) -> None:
    few = np.array([0.5, 1.0, 2.0, 4.0])
    vectors = draw_panels([Panel("few", "Few points", [Line("regret", few, few)])], tmp_path / "figure", "")[0]
    ticks = vectors.read_text().split('id="matplotlib.axis_1"')[1].split('id="matplotlib.axis_2"')[0]
    assert [f">{x:g}</text>" in ticks for x in few] == [True] * 4


def test_traces_on_axes_of_ones_own_are_labelled_and_all_different() -> None:
    import matplotlib.pyplot as plt

    trace = simulate("ldp-ucb-l", arms=[0.9, 0.6], horizon=200, runs=2, epsilon=1, engine="python")
    _, ax = plt.subplots()
    for number in range(12):
        trace.plot(ax, label=f"trace {number}")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("round t", "regret (reward units)", "log")
    assert len({repr(look_of(line)) for line in ax.get_lines()}) == 12
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [f"trace {number}" for number in range(12)]
    _, own = plt.subplots()
    own.set_xlabel("visitors")
    trace.plot(own)
    assert (own.get_xlabel(), own.get_xscale()) == ("visitors", "linear"), "what the owner chose is changed"
    assert str(own.get_lines()[0].get_label()) == "LDP-UCB-L (ε = 1)"
    plt.close("all")


def test_every_policy_has_a_title_as_papers_write_it() -> None:
    titles = {name: lookup.traits(name).title for name in lookup.names()}
    assert titles["ldp-ucb-l"] == "LDP-UCB-L"
    assert titles["adap-klucb"] == "AdaP-KLUCB"
    for name, title in titles.items():
        assert title.lower().replace(" ", "-").startswith(name), f"{name}: its docstring must begin with its title"
