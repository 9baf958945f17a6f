"""Pictures: drawn into the file that was named, whole or not at all."""

import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.accounting import meaning
from tacit.privacy.errors import InvalidInput, Unavailable
from tacit.privacy.notation import parse
from tacit.report import check_target, privacy_curve, rendering, save, trade_off

EVENT = parse("gaussian(1.5)")
SPECS = {"trade-off": trade_off(meaning(EVENT, 1e-6)), "privacy curve": privacy_curve(EVENT, 3.1, 1e-6)}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_an_svg_holds_the_title_and_the_labels_as_text(spec: dict[str, Any], tmp_path: Path) -> None:
    save(spec, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert spec["title"]["text"] in drawn
    assert spec["encoding"]["x"]["axis"]["title"] in drawn
    assert spec["layer"][-1]["mark"]["text"] in drawn


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_png_is_twice_as_fine_as_the_plot_is_wide(spec: dict[str, Any], tmp_path: Path) -> None:
    save(spec, tmp_path / "plot.png")
    drawn = (tmp_path / "plot.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", drawn[16:24])
    assert 2 * spec["width"] < width < 3 * spec["width"]
    assert 2 * spec["height"] < height < 4 * spec["height"]


def test_an_old_picture_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    path.write_text("old", encoding="utf-8")
    save(SPECS["trade-off"], path)
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(SPECS["trade-off"], tmp_path / "plot.svg")
    finally:
        os.umask(before)
    assert (tmp_path / "plot.svg").stat().st_mode & 0o777 == 0o640


def test_a_picture_that_cannot_be_put_into_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plot.svg"
    path.write_text("old", encoding="utf-8")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InvalidInput, match="cannot be written: No space left on device"):
        save(SPECS["trade-off"], path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["plot.pdf", "plot", "plot.SVG", ".svg"])
def test_another_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"ends in \.svg or \.png"):
        check_target(tmp_path / name)


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        save(SPECS["trade-off"], tmp_path / "plot.svg")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere does not exist"):
        check_target(tmp_path / "nowhere" / "plot.svg")


def test_without_the_renderer_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # importing it fails
    with pytest.raises(Unavailable, match=r"run pip install 'tacit\[report\]'") as refusal:
        check_target(tmp_path / "plot.svg")
    assert (refusal.value.code, refusal.value.exit_code) == ("T600", 4)


def test_a_specification_loads_nothing_from_the_network(tmp_path: Path) -> None:
    assert rendering.NO_NETWORK == []
    spec = {**SPECS["trade-off"], "layer": [{"mark": "point", "data": {"url": "https://example.org/people.json"}}]}
    with pytest.raises(InvalidInput, match=r"cannot be drawn: .* External data url not allowed"):
        save(spec, tmp_path / "plot.svg")
    assert list(tmp_path.iterdir()) == []
