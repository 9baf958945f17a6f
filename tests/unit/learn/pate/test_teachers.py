"""Every unit is in one part, and whatever a teacher does, one part moves one vote."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.learn.pate.teachers import TeacherTraining, draw_parts, fit_teacher, rehearse, require_disjoint
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import InvalidInput, WrongType

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = (X[:, 0] > 0).astype(np.int64)
UNITS = np.repeat(np.arange(100), 3)
QUERIES = RNG.normal(size=(20, 2))


def nearest_mean(x: np.ndarray, y: np.ndarray) -> Any:
    """A teacher that is a function: what torch users write."""
    means = np.stack([x[y == label].mean(axis=0) for label in (0, 1)])
    return lambda queries: np.argmin(((queries[:, None] - means) ** 2).sum(axis=2), axis=1)


def training(teacher: Any = None, **changes: Any) -> TeacherTraining:
    settings = {"teachers": 10, "classes": 2, "x": X, "y": Y, "units": UNITS, **changes}
    return TeacherTraining(teacher or LogisticRegression(), **settings)


def test_all_rows_of_a_unit_are_in_one_part() -> None:
    parts = draw_parts(UNITS, 10, SeededSource(1))
    require_disjoint(UNITS, parts)
    assert len(np.unique(parts)) == 10


def test_a_unit_in_two_parts_is_noticed() -> None:
    parts = draw_parts(UNITS, 10, SeededSource(1))
    parts[0] = (parts[0] + 1) % 10
    with pytest.raises(InvalidInput, match="two teachers"):
        require_disjoint(UNITS, parts)


def test_parts_drawn_by_row_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_row(units: np.ndarray, teachers: int, source: Any) -> np.ndarray:
        return np.arange(len(units)) % teachers

    monkeypatch.setattr("tacit.learn.pate.teachers.draw_parts", by_row)
    with pytest.raises(InvalidInput, match="two teachers"):
        training().votes(QUERIES, SeededSource(1))


@pytest.mark.parametrize("units", [1, 9, 10])
def test_a_part_without_units_votes_for_the_first_class(units: int) -> None:
    few = slice(None, 3 * units)
    votes = training(x=X[few], y=np.ones(3 * units, dtype=np.int64), units=UNITS[few]).votes(QUERIES, SeededSource(1))
    filled = len(np.unique(draw_parts(UNITS[few], 10, SeededSource(1))))
    assert (votes == [10 - filled, filled]).all()


@pytest.mark.parametrize("teacher", [LogisticRegression(), nearest_mean])
def test_every_teacher_votes_once_on_each_query(teacher: Any) -> None:
    votes = training(teacher).votes(QUERIES, SeededSource(1))
    assert votes.shape == (20, 2)
    assert (votes.sum(axis=1) == 10).all()
    assert ((votes[:, 1] > 5) == (QUERIES[:, 0] > 0)).mean() > 0.8


def test_removing_one_unit_moves_at_most_one_vote_of_each_query() -> None:
    votes = training().votes(QUERIES, SeededSource(1))
    parts = draw_parts(UNITS, 10, SeededSource(1))
    for gone in (0, 57):
        stays = gone != UNITS
        fewer = training(x=X[stays], y=Y[stays], units=UNITS[stays])
        found = np.concatenate([one for _, one in sorted(fewer._run(_vote, parts[stays]))]).reshape(10, -1)
        counts = np.stack([(found == label).sum(axis=0) for label in (0, 1)], axis=1)
        assert np.abs(counts - votes).sum(axis=1).max() <= 2


def _vote(index: int, x: np.ndarray, y: np.ndarray) -> tuple[int, np.ndarray]:
    return index, np.asarray(LogisticRegression().fit(x, y).predict(QUERIES))


@pytest.mark.parametrize("failing", ["fit", "predict", "labels", "shape"])
def test_a_teacher_that_fails_votes_for_one_class(failing: str) -> None:
    def broken(x: np.ndarray, y: np.ndarray) -> Any:
        if failing == "fit":
            raise RuntimeError("no convergence")
        if failing == "predict":
            return lambda queries: 1 / 0
        return lambda queries: np.full(len(queries) + (failing == "shape"), 7)

    votes = training(broken).votes(QUERIES, SeededSource(1))
    assert (votes == [10, 0]).all()


def test_a_part_with_one_class_votes_for_it() -> None:
    votes = training(y=np.ones(300, dtype=np.int64)).votes(QUERIES, SeededSource(1))
    assert (votes == [0, 10]).all()


def test_a_broken_teacher_is_found_on_public_rows() -> None:
    def broken(x: np.ndarray, y: np.ndarray) -> Any:
        raise RuntimeError("no convergence")

    with pytest.raises(InvalidInput, match="no convergence"):
        rehearse(broken, 2, QUERIES)
    with pytest.raises(WrongType, match="one label"):
        rehearse(lambda x, y: lambda queries: np.zeros(3), 2, QUERIES)
    with pytest.raises(WrongType, match="scikit-learn"):
        fit_teacher("forest", X, Y)


def test_a_teacher_that_changes_its_input_moves_no_other_vote() -> None:
    seen = []

    def careless(x: np.ndarray, y: np.ndarray) -> Any:
        def predict(queries: np.ndarray) -> np.ndarray:
            seen.append(queries.copy())
            queries += x[0]
            return np.zeros(len(queries))

        return predict

    before = QUERIES.copy()
    training(careless).votes(QUERIES, SeededSource(1))
    rehearse(careless, 2, QUERIES)
    assert all((one == before).all() for one in seen)
    assert (before == QUERIES).all()


def test_teachers_share_no_generator_and_leave_that_of_the_caller_alone() -> None:
    torch = pytest.importorskip("torch")
    drawn = []

    def draws() -> list[float]:
        return [random.random(), float(np.random.random()), float(torch.rand(1))]

    def drawing(x: np.ndarray, y: np.ndarray) -> Any:
        drawn.append(draws())
        return lambda queries: np.zeros(len(queries)) if drawn.append(draws()) is None else None

    def after() -> list[float]:
        random.seed(0), np.random.seed(0), torch.manual_seed(0)
        training(drawing).votes(QUERIES, SeededSource(1))
        return draws()

    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    untouched = draws()
    assert after() == after() == untouched
    assert len({one for kind in drawn for one in kind}) > 100


def test_warnings_about_the_data_of_a_teacher_do_not_leave() -> None:
    def warning(x: np.ndarray, y: np.ndarray) -> Any:
        warnings.warn(f"{len(x)} rows", stacklevel=1)
        return nearest_mean(x, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = training(warning).votes(QUERIES, SeededSource(1))
    assert (votes == training(nearest_mean).votes(QUERIES, SeededSource(1))).all()


def test_what_a_teacher_sets_for_the_process_does_not_reach_the_next() -> None:
    torch = pytest.importorskip("torch")
    seen = []

    def settings() -> list[Any]:
        return [np.geterr()["over"], torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()]

    def setting(x: np.ndarray, y: np.ndarray) -> Any:
        seen.append(settings())
        np.seterr(over="raise"), torch.set_default_dtype(torch.float64), torch.set_grad_enabled(False)
        torch.set_num_threads(3 - torch.get_num_threads())
        return nearest_mean(x, y)

    before = settings()
    training(setting).votes(QUERIES, SeededSource(1))
    assert settings() == before
    assert seen == [before] * 10


FIRST_TO_IMPORT = """
import sys
import numpy as np
from tacit.learn.pate.teachers import ballots, train_one

def change(count):
    import torch
    torch.manual_seed(count), torch.set_default_dtype(torch.float64), torch.set_num_threads(count)
    torch.use_deterministic_algorithms(True)

def teacher(x, y):
    if when == "training":
        change(len(x))
    return lambda queries: change(len(x)) if when == "voting" else queries[:, 0]

when = sys.argv[1]
assert "torch" not in sys.modules
ballots(train_one(teacher, np.zeros((7, 2)), np.arange(7) % 2), 2, np.zeros((3, 2)))
import torch
print(torch.initial_seed() == 7, torch.get_default_dtype(), torch.get_num_threads() == 7, end=" ")
print(torch.are_deterministic_algorithms_enabled())
"""


@pytest.mark.parametrize("when", ["training", "voting"])
def test_a_teacher_that_is_the_first_to_import_torch_leaves_it_as_it_was(when: str) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", FIRST_TO_IMPORT, when]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.split() == ["False", "torch.float32", "False", "False"]


class Odd(BaseException):
    """Neither an Exception nor an interruption."""


@pytest.mark.parametrize("kind", [SystemExit, Odd, GeneratorExit])
@pytest.mark.parametrize("when", ["training", "voting"])
def test_a_teacher_that_raises_anything_but_an_interruption_votes_for_one_class(
    kind: type[BaseException], when: str
) -> None:
    def failing(x: np.ndarray, y: np.ndarray) -> Any:
        def fail(queries: np.ndarray) -> Any:
            raise kind(len(x))

        return fail(x) if when == "training" else fail

    votes = training(failing).votes(QUERIES, SeededSource(1))
    assert votes.tolist() == [[10, 0]] * len(QUERIES)
    with pytest.raises(InvalidInput, match=kind.__name__):
        rehearse(failing, 2, QUERIES)


def test_an_interruption_ends_the_training(tmp_path: Path) -> None:
    def interrupted(x: np.ndarray, y: np.ndarray) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training(interrupted).votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")


def test_a_folder_of_another_function_is_refused(tmp_path: Path) -> None:
    def teacher(scale: float) -> Any:
        def train(x: np.ndarray, y: np.ndarray) -> Any:
            return nearest_mean(scale * x, y)

        return train

    first = training(teacher(1.0)).votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")
    again = training(teacher(1.0)).votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")
    assert (again == first).all()
    for other in (teacher(2.0), lambda x, y: nearest_mean(x, y), nearest_mean, partial(nearest_mean)):
        with pytest.raises(InvalidInput, match="other data"):
            training(other).votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")


class Weighted:
    """A teacher that is an object."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __call__(self, x: np.ndarray, y: np.ndarray) -> Any:
        return lambda queries: (queries @ np.asarray(self.weights) > 0).astype(int)


def holding(held: Any) -> Any:
    return lambda x, y: lambda queries: (queries @ np.asarray(held) > 0).astype(int)


def by_default(held: Any) -> Any:
    def train(x: np.ndarray, y: np.ndarray, *, weights: Any = held) -> Any:
        return holding(weights)(x, y)

    return train


def as_tensor(held: Any) -> Any:
    return holding(pytest.importorskip("torch").tensor(held))


@pytest.mark.parametrize(
    "made",
    [holding, by_default, Weighted, as_tensor, lambda held: partial(holding, held), lambda held: holding([held])],
)
def test_a_folder_of_a_teacher_that_holds_other_numbers_is_refused(made: Any, tmp_path: Path) -> None:
    folder = tmp_path / "teachers"
    first = training(made(np.ones(2))).votes(QUERIES, SeededSource(1), folder=folder)
    assert (training(made(np.ones(2))).votes(QUERIES, SeededSource(1), folder=folder) == first).all()
    with pytest.raises(InvalidInput, match="other data"):
        training(made(-np.ones(2))).votes(QUERIES, SeededSource(1), folder=folder)


def test_a_teacher_whose_content_cannot_be_compared_takes_no_folder(tmp_path: Path) -> None:
    lock = threading.Lock()

    def guarded(x: np.ndarray, y: np.ndarray) -> Any:
        with lock:
            return nearest_mean(x, y)

    for teacher in (guarded, Weighted(lock), partial(guarded)):
        with pytest.raises(InvalidInput, match="cannot be compared with that of a kept training") as refused:
            training(teacher).votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")
        assert refused.value.code
    assert training(guarded).votes(QUERIES, SeededSource(1)).shape == (20, 2)


def test_a_folder_keeps_votes_that_only_the_owner_can_read(tmp_path: Path) -> None:
    folder, shares = tmp_path / "teachers", []
    first = training().votes(QUERIES, SeededSource(1), folder=folder, progress=shares.append)
    assert shares == [one / 10 for one in range(1, 11)]
    files = list(folder.iterdir())
    assert len(files) == 12
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again = training().votes(QUERIES, SeededSource(2), folder=folder)
    assert (again == first).all()


def test_a_folder_of_other_data_is_refused(tmp_path: Path) -> None:
    training().votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")
    fewer = training(x=X[:-1], y=Y[:-1], units=UNITS[:-1])
    for other in (training(y=1 - Y), training(LogisticRegression(C=2)), training(teachers=11), fewer):
        with pytest.raises(InvalidInput, match="other data"):
            other.votes(QUERIES, SeededSource(1), folder=tmp_path / "teachers")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        training().votes(QUERIES, SeededSource(1), folder=tmp_path / "mine")


def shortened(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def filled(path: Path) -> None:
    np.save(path, np.full_like(np.load(path), 10**6))


def zipped(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, np.zeros(3))


def in_floats(path: Path) -> None:
    np.save(path, np.load(path).astype(float))


def removed_for_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", ["parts.npy", "votes-00003.npy"])
@pytest.mark.parametrize("damage", [shortened, cut, emptied, filled, zipped, in_floats, removed_for_a_folder])
def test_a_damaged_file_of_a_folder_is_refused_and_loses_nothing(name: str, damage: Any, tmp_path: Path) -> None:
    folder = tmp_path / "teachers"
    first = training().votes(QUERIES, SeededSource(1), folder=folder)
    whole = (folder / name).read_bytes()
    others = {one.name: one.read_bytes() for one in folder.iterdir() if one.name != name}
    damage(folder / name)
    with pytest.raises(InvalidInput, match=f"{name} is damaged"):
        training().votes(QUERIES, SeededSource(2), folder=folder)
    assert {one.name: one.read_bytes() for one in folder.iterdir() if one.name != name} == others
    if (folder / name).is_dir():
        (folder / name).rmdir()
    if name.startswith("votes"):
        (folder / name).unlink(missing_ok=True)  # as the error says: this teacher is trained again
    else:
        (folder / name).write_bytes(whole)
    assert (training().votes(QUERIES, SeededSource(2), folder=folder) == first).all()


@pytest.mark.soak
def test_teachers_in_several_processes_vote_as_in_one() -> None:
    one, two = (training(jobs=jobs).votes(QUERIES, SeededSource(1)) for jobs in (1, 2))
    assert (one == two).all()
