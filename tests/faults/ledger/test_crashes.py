"""A power cut, or a disk that fails, before and after every statement: nothing that was said is lost."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import TacitError
from tests.faults.ledger.simulator import FILES, Crash, Disk, begin, check

STEPS = 14
SIDES = ("journal", "shm", "wal")


def seeds(short: int, long: int) -> list[Any]:
    """Return so many seeds for a test, and as many as `long` for `make soak`."""
    return [*range(short), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(short, long))]


@pytest.mark.parametrize("seed", seeds(1, 8))
def test_a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    numbers = itertools.count()
    boundaries: list[str] = []

    def look(statement: str) -> None:
        boundaries.append(statement)
        image = disk.image(tmp_path / f"image-{next(numbers)}")
        with Ledger.open(Disk(image).store()) as recovered:
            check(recovered, client)

    disk = Disk(tmp_path / "ledger", look)
    client = begin(disk.store(), seed)
    disk.is_watched = True
    with client.ledger:
        client.work(STEPS)
        disk.is_watched = False
        check(client.ledger, client, unacknowledged_max=0)
    assert sum("COMMIT" in statement for statement in boundaries) >= 2 * STEPS / 2
    assert sum("INSERT INTO journal" in statement for statement in boundaries) >= STEPS


@pytest.mark.parametrize("seed", seeds(4, 24))
def test_a_disk_that_fails_in_the_middle_is_survived_by_the_process(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    left = 0

    def fail_now_and_then(statement: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash(statement)

    disk = Disk(tmp_path / "ledger", fail_now_and_then)
    client = begin(disk.store(), seed)
    failures = 0
    for _ in range(25):
        left, disk.is_watched = chance.randint(1, 40), True
        try:
            client.work(3)
        except Crash:
            failures += 1
        disk.is_watched = False
        check(client.ledger, client, unacknowledged_max=failures)
    assert failures >= 8
    client.ledger.close()
    with Ledger.open(disk.store()) as recovered:
        check(recovered, client, unacknowledged_max=failures)


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_whoever_asks_again_with_the_same_key_after_a_crash_pays_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    left = 0

    def fail(statement: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash(statement)

    disk = Disk(tmp_path / "ledger", fail)
    with Ledger.open(disk.store()) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for number in range(40):
            left, disk.is_watched = chance.randint(1, 25), True
            for _ in range(30):
                try:
                    ledger.reserve("visits", events.Laplace(0.01), key=f"key {number}")
                    break
                except Crash:
                    left = chance.randint(1, 25)
            disk.is_watched = False
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.4)
        assert len(ledger.reservations()) == 40


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_a_log_that_was_torn_off_anywhere_leaves_an_earlier_ledger_that_is_whole(tmp_path: Path, seed: int) -> None:
    """Not what fsync allows, but what a careless disk may do: the state is then an older one, never a false one."""
    chance = random.Random(seed)
    disk = Disk(tmp_path / "ledger")
    client = begin(disk.store(), seed)
    with client.ledger:
        client.work(STEPS)
        final = {record.number: record.hash for record in client.ledger.history()}
        image = disk.image(tmp_path / "image")
    log = (image / FILES[1]).read_bytes()
    seen = set()
    for cut in sorted({0, 1, 31, 32, len(log), *(chance.randrange(len(log)) for _ in range(40))}):
        torn = Disk(image).image(tmp_path / f"torn-{cut}")
        (torn / FILES[1]).write_bytes(log[:cut])
        with Ledger.open(Disk(torn).store()) as recovered:
            head = recovered.verify(full=True).head
            seen.add(head.number)
            assert head.number == 0 or final[head.number] == head.hash
    assert max(seen) == max(final)
    assert len(seen) > 5


def test_a_simulation_is_replayed_from_its_seed(tmp_path: Path) -> None:
    heads = set()
    for run in range(2):
        client = begin(Disk(tmp_path / str(run)).store(), 7)
        with client.ledger:
            client.work(STEPS)
            heads.add(client.ledger.head())
    assert len(heads) == 1


def test_a_crash_while_a_ledger_is_made_leaves_none_or_a_whole_one(tmp_path: Path) -> None:
    for number in range(1, 200):
        left = number

        def fail(statement: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash(statement)

        folder = tmp_path / str(number)
        disk = Disk(folder, fail)
        disk.is_watched = True
        try:
            Ledger.open(disk.store()).close()
        except (Crash, TacitError):
            assert {path.name for path in folder.iterdir()} <= {"ledger.sqlite", *(f"ledger.sqlite-{x}" for x in SIDES)}
        else:
            assert left > 0
            return
        with Ledger.open(folder) as ledger:
            ledger.create_budget("visits", epsilon=1.0)
    pytest.fail("the last boundary was never reached")
