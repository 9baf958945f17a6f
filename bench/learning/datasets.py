"""Readers of the real data in the folder TACIT_DATA: MNIST, and UCI Adult with what its description states."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

BOUNDS: Final = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}
NOMINAL: Final = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
CLASSES: Final = ["<=50K", ">50K"]


def has_mnist() -> bool:
    """Return whether TACIT_DATA names a folder that holds MNIST."""
    return _folder("mnist") is not None


def mnist(part: Literal["train", "t10k"], count: int | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images, n x 28 x 28 and read-only, and labels of a part of MNIST, or the first of them."""
    folder = _folder("mnist")
    assert folder is not None, "callers check has_mnist()"
    images, labels = _mnist(folder, part)
    return images[:count], labels[:count].astype(np.int64)


@cache
def _mnist(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images, labels = (
        np.frombuffer(gzip.decompress((folder / f"{part}-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=offset)
        for kind, offset in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return images.reshape(-1, 28, 28), labels


def adult() -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return the training and the test file of Adult, or None without TACIT_DATA."""
    folder = _folder("adult")
    if folder is None:
        return None
    train, test = (pd.read_csv(folder / name, skipinitialspace=True) for name in ("train.csv", "test.csv"))
    return train, test


def _folder(name: str) -> Path | None:
    path = Path(os.environ.get("TACIT_DATA", "")) / name
    return path if "TACIT_DATA" in os.environ and path.is_dir() else None


def incomes(frame: pd.DataFrame) -> Any:
    """Return who earns more, of a file of Adult."""
    return frame["income"].str.rstrip(".").to_numpy()


def categories() -> dict[str, list[str]]:
    """Return the categories of Adult's description (UCI Machine Learning Repository)."""
    found = {
        "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
        "Never-worked",
        "marital_status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
        "Married-AF-spouse",
        "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
        "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
        "Protective-serv, Armed-Forces",
        "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
        "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
        "sex": "Female, Male",
    }
    return {name: listed.split(", ") for name, listed in found.items()}
