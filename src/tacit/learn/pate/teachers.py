"""Teachers: models that are trained on disjoint parts of the private data and vote on public queries.

Promise: every unit is in one part, drawn uniformly and independently of the data and of other units; a teacher sees its
own part and the public queries, and nothing else; whatever goes wrong with it becomes a constant vote. So one unit
changes the votes of one teacher. Votes are private: they are kept in files that only their owner can read (mode 0600).

Two ways from one teacher to the next are closed here (`isolation`, `ballots`): what a process shares, such as the
generators of `random`, numpy and torch, is set anew for each teacher, and restored; and each teacher gets a copy of the
queries, so that a model that changes its input (`StandardScaler(copy=False)`) changes no one else's. Other state that a
function shares between its calls is the caller's responsibility.

Whatever else a teacher raises, KeyboardInterrupt ends the training, for it cannot be told from that of the user. A
teacher that raises it itself, because of a row of its part, shows that row.

A teacher is a scikit-learn classifier, which is cloned for each part, or a function `teacher(X, y)` that trains a model
of any kind, for example in torch, and returns a function from queries to labels. It must be able to be pickled when
`jobs` is above 1. Labels are indices into the declared classes.

Training charges nothing, for nothing is released by it. In a folder it can be interrupted and continued: each teacher's
votes are stored when it is done. A folder belongs to one training: other data, queries or settings are refused, and
so is a teacher that holds what cannot be compared (`descriptions`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.learn.pate.descriptions import describe
from tacit.learn.pate.isolation import isolated
from tacit.mechanisms.exact_sampling import integers_below
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.arguments import require_progress
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.extras import import_extra

Labels = NDArray[np.int64]
Predictor = Callable[[Any], Any]

REHEARSED_ROWS: Final = 64
_PARTS, _STATE = "parts.npy", "training.json"


def draw_parts(units: NDArray[Any], teachers: int, source: RandomSource = SYSTEM) -> Labels:
    """Return the part of each row: one for each unit, uniform and independent of everything else.

    The number of units is private, so there may be fewer than teachers: some parts are then empty, as others may be.
    """
    found, rows = np.unique(units, return_inverse=True)
    return integers_below(teachers, len(found), source)[rows.ravel()]


def require_disjoint(units: NDArray[Any], parts: Labels) -> None:
    """Raise unless every unit is in one part."""
    order = np.lexsort((parts, units))
    ordered, placed = units[order], parts[order]
    if bool(((ordered[1:] == ordered[:-1]) & (placed[1:] != placed[:-1])).any()):
        raise InvalidInput("a unit is in the parts of two teachers", name="parts")


def require_teacher(teacher: Any) -> None:
    """Raise WrongType for what is neither a scikit-learn classifier nor a function."""
    is_class = isinstance(teacher, type) and hasattr(teacher, "get_params")
    if is_class or not (_is_estimator(teacher) or callable(teacher)):
        raise WrongType("a teacher is a scikit-learn classifier or a function of X and y", name="teacher")


def _is_estimator(teacher: Any) -> bool:
    return hasattr(teacher, "fit") and hasattr(teacher, "get_params")


def fit_teacher(teacher: Any, x: Any, y: Labels) -> Predictor:
    """Train one teacher and return its function from queries to labels."""
    require_teacher(teacher)
    if _is_estimator(teacher):
        model: Any = import_extra("sklearn.base", extra="learn", purpose="PATE").clone(teacher).fit(x, y)
    else:
        model = teacher(x, y)
    predict = getattr(model, "predict", model)
    if not callable(predict):
        raise WrongType("a teacher function must return a function of queries, or a model", name="teacher")
    return predict  # type: ignore[no-any-return]


def train_one(teacher: Any, x: Any, y: Labels) -> Predictor:
    """Train a teacher on its part; a part with one class or none, or a teacher that fails, votes for one class."""
    seen = np.unique(y)
    if len(seen) < 2:
        return partial(_constant, int(seen[0]) if len(seen) else 0)
    try:
        with isolated():
            return fit_teacher(teacher, x, y)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return partial(_constant, 0)


def _constant(label: int, queries: Any) -> Labels:
    return np.full(len(queries), label, dtype=np.int64)


def ballots(predict: Predictor, classes: int, queries: Any) -> Labels:
    """Return a teacher's vote on each query; class 0 wherever it gives no label within the classes."""
    try:
        with isolated():
            found = np.asarray(predict(np.array(queries)))
            if found.shape != (len(queries),):
                return _constant(0, queries)
            labels = found.astype(np.int64)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return _constant(0, queries)
    return np.where((labels >= 0) & (labels < classes), labels, 0)


def count_votes(all_ballots: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return counts, queries x classes, from ballots, teachers x queries."""
    return np.stack([(all_ballots == label).sum(axis=0) for label in range(classes)], axis=1)


def rehearse(teacher: Any, classes: int, queries: Any) -> None:
    """Raise what a teacher raises on public queries with made-up labels, so that a broken one is found before data."""
    some = queries[:REHEARSED_ROWS]
    made_up = np.arange(len(some)) % classes
    try:
        found = np.asarray(fit_teacher(teacher, np.array(some), made_up)(np.array(some)))
    except (WrongType, InvalidInput, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InvalidInput(
            f"the teacher cannot be trained on public queries with made-up labels: {type(error).__name__}: {error}",
            name="teacher",
        ) from error
    if found.shape != (len(some),):
        raise WrongType("a teacher must predict one label for each query", name="teacher", value=found.shape)


@dataclass(frozen=True)
class TeacherTraining:
    """Teachers to be trained on the parts of the private rows, and to vote on public queries."""

    teacher: Any
    teachers: int
    classes: int
    x: Any
    y: Labels
    units: NDArray[Any]
    jobs: int = 1

    def models(self, source: RandomSource, progress: Callable[[float], None] | None = None) -> list[Predictor]:
        """Train all teachers and return their functions; they are private."""
        parts = draw_parts(self.units, self.teachers, source)
        found: list[Any] = [None] * self.teachers
        for done, (index, model) in enumerate(self._run(partial(_train_job, self.teacher), parts), 1):
            found[index] = model
            _report(progress, done / self.teachers)
        return found

    def votes(
        self,
        queries: Any,
        source: RandomSource,
        *,
        folder: Path | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> NDArray[np.int64]:
        """Train all teachers, those that a folder has no votes of yet, and return the counts: queries x classes."""
        require_progress(progress)
        parts = (
            draw_parts(self.units, self.teachers, source)
            if folder is None
            else self._kept_parts(folder, queries, source)
        )
        require_disjoint(self.units, parts)
        found = np.zeros((self.teachers, len(queries)), dtype=np.int64)
        missing = []
        for index in range(self.teachers):
            if folder is not None and _file(folder, index).exists():
                remedy = "remove it, and this teacher is trained again"
                found[index] = _load(_file(folder, index), len(queries), self.classes, remedy)
            else:
                missing.append(index)
        job = partial(_vote_job, self.teacher, self.classes, queries, folder)
        for done, (index, one) in enumerate(self._run(job, parts, missing), 1):
            found[index] = one
            _report(progress, (self.teachers - len(missing) + done) / self.teachers)
        return count_votes(found, self.classes)

    def _run(self, job: Callable[..., Any], parts: Labels, which: list[int] | None = None) -> Iterator[tuple[int, Any]]:
        indices = range(self.teachers) if which is None else which
        rows = {index: np.flatnonzero(parts == index) for index in indices}
        work = ((index, self.x[rows[index]], self.y[rows[index]]) for index in indices)
        if self.jobs == 1:
            yield from (job(*one) for one in work)
            return
        joblib = import_extra("joblib", extra="learn", purpose="PATE")
        parallel = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")
        yield from parallel(joblib.delayed(job)(*one) for one in work)

    def _kept_parts(self, folder: Path, queries: Any, source: RandomSource) -> Labels:
        """Return the parts of a training that was begun in the folder, or draw and keep them."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = json.dumps({"version": 1, "inputs": self._digest(queries), "simulated": source.simulated}).encode()
        kept = folder / _STATE
        if kept.exists() and (folder / _PARTS).exists():
            if kept.read_bytes() != state:
                raise InvalidInput(
                    "the folder holds teachers of other data, queries or settings; take an empty one", name="folder"
                )
            remedy = "nothing was charged; take an empty folder"
            return _load(folder / _PARTS, len(self.units), self.teachers, remedy)
        if any(folder.iterdir()) and not {one.name for one in folder.iterdir()} <= {_PARTS, _STATE}:
            raise InvalidInput("the folder is not empty and holds no teachers; take an empty one", name="folder")
        parts = draw_parts(self.units, self.teachers, source)
        _store(folder / _STATE, state)
        _store(folder / _PARTS, parts)
        return parts

    def _digest(self, queries: Any) -> str:
        digest = hashlib.sha256(repr((self.teachers, self.classes, describe(self.teacher))).encode())
        for one in (self.x, self.y, self.units, queries):
            array = np.ascontiguousarray(one)
            text = array.tobytes() if array.dtype != object else repr(array.tolist()).encode()
            digest.update(f"{array.dtype}{array.shape}".encode() + hashlib.sha256(text).digest())
        return digest.hexdigest()


def _train_job(teacher: Any, index: int, x: Any, y: Labels) -> tuple[int, Predictor]:
    return index, train_one(teacher, x, y)


def _vote_job(
    teacher: Any, classes: int, queries: Any, folder: Path | None, index: int, x: Any, y: Labels
) -> tuple[int, Labels]:
    found = ballots(train_one(teacher, x, y), classes, queries)
    if folder is not None:
        _store(_file(folder, index), found)
    return index, found


def _file(folder: Path, index: int) -> Path:
    return folder / f"votes-{index:05d}.npy"


def _store(path: Path, content: bytes | NDArray[Any]) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.save(file, content, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _load(path: Path, length: int, below: int, remedy: str) -> Labels:
    """Return `length` whole numbers from 0 to `below` - 1; raise InvalidInput for a file that holds anything else."""
    try:
        found = np.load(path, allow_pickle=False)
        is_whole = found.shape == (length,) and found.dtype == np.int64 and bool(((found >= 0) & (found < below)).all())
    except Exception:  # what numpy raises for damaged files is not documented
        is_whole = False
    if not is_whole:
        raise InvalidInput(f"{path} is damaged; {remedy}", name="folder")
    return np.asarray(found)


def _report(progress: Callable[[float], None] | None, share: float) -> None:
    if progress is not None:
        progress(share)
