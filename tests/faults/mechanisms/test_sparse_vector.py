"""A sparse vector gives no more positive answers than were paid for, whatever happens in the middle of one."""

import contextlib
import copy
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tacit.mechanisms import SparseVector
from tacit.mechanisms.randomness import SYSTEM
from tacit.mechanisms.sparse_vector import SparseVectorSession
from tacit.privacy.errors import Exhausted, InvalidInput, TacitError, WrongType


class Watched:
    """The system's randomness, after `before` was called."""

    simulated = False

    def __init__(self) -> None:
        self.before: Callable[[], object] = lambda: None

    def read(self, size: int) -> bytes:
        self.before()
        return SYSTEM.read(size)


def started(positives: int = 1) -> tuple[SparseVectorSession, Watched]:
    source = Watched()
    return SparseVector(1.0, 1.0, 0.0, positives=positives).start(source=source), source


@pytest.mark.parametrize("positives", [1, 2])
def test_threads_that_ask_at_once_get_the_positive_answers_that_were_paid_for(positives: int) -> None:
    session, source = started(positives)
    together = threading.Barrier(positives + 1)
    answers: list[bool] = []

    def meet() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.2)  # all threads draw at once, if they may

    def ask() -> None:
        for _ in range(5):
            with contextlib.suppress(Exhausted):
                answers.append(session.ask(1e9))

    source.before = meet
    threads = [threading.Thread(target=ask) for _ in range(positives + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == positives
    assert session.exhausted
    with pytest.raises(Exhausted):
        session.ask(1e9)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_answer_that_was_interrupted_is_spent(error: type[BaseException]) -> None:
    session, source = started(positives=2)

    def fail() -> None:
        raise error

    source.before = fail
    with pytest.raises(error):
        session.ask(1e9)
    source.before = lambda: None
    assert session.ask(1e9)
    assert session.exhausted


def test_an_answer_that_is_asked_for_within_another_is_counted() -> None:
    """The noise of a question may run other code of the same thread, such as a signal handler."""
    session, source = started()
    inner: list[bool] = []

    def again() -> None:
        source.before = lambda: None
        with contextlib.suppress(Exhausted):
            inner.append(session.ask(1e9))

    source.before = again
    assert session.ask(1e9)
    assert inner == []


def test_values_that_are_refused_and_negative_answers_cost_nothing() -> None:
    session, _ = started()
    for value in ("x", [1, 2], float("nan")):
        with pytest.raises(TacitError):
            session.ask(value)
    assert not any(session.ask(-1e9) for _ in range(50))
    assert not session.exhausted
    assert session.ask(1e9)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied_since_the_copy_would_have_the_same_noise(copied: Any) -> None:
    with pytest.raises(WrongType, match="start another one"):
        copied(started()[0])


def test_a_forked_process_cannot_go_on_with_a_session() -> None:
    session, _ = started()
    child = os.fork()
    if not child:
        try:
            session.ask(1e9)
        except InvalidInput:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert session.ask(1e9)
