"""Figures: every line is drawn, and can be told from every other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from dpbandits.plotting import COLOURS, DASHES, Line, Panel, draw_lines, draw_panels, new_figure, save

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
    assert [path.name for path in paths] == ["figure.svg", "figure.png"]
    vectors = paths[0].read_text()
    for number in range(12):
        assert f"<!-- line {number} -->" in vectors, "a line is missing in the legend"
    curves = [part for part in vectors.split("<path ") if "stroke-width: 1.4" in part]
    styles = {part.split('style="')[1].split('"')[0] for part in curves}
    assert len(styles) == 12
    assert len(curves) == 24, "each line, and its place in the legend"


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
        contents.append([path.read_bytes() for path in save(figure, tmp_path / name / "figure")])
    assert contents[0] == contents[1]


def test_an_odd_number_of_panels_leaves_no_empty_axes(tmp_path: Path) -> None:
    panels = [Panel(f"p{number}", f"Panel {number}", lines(2), band="two standard errors") for number in range(3)]
    vectors = draw_panels(panels, tmp_path / "figure", "seed 0")[0].read_text()
    assert [f"<!-- Panel {number} -->" in vectors for number in range(3)] == [True] * 3
    assert vectors.count('id="matplotlib.axis_') == 6
    assert "<!-- seed 0; bands: two standard errors -->" in vectors
