"""Several processes over one folder: what one revokes, removes or counts, the other sees at its next request."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.privacy.errors import NotKnown, Throttled
from tests.unit.server.access.places import PASSWORD, sqlite_place

OTHER = """
import sys
from pathlib import Path
from tacit.privacy.errors import NotKnown
from tacit.server.access import Access, Hasher
from tacit.server.database import open_database

access = Access(open_database(Path(sys.argv[1])), hasher=Hasher(is_cheap=True))
for line in sys.stdin:
    verb, word = line.split()
    if verb == "revoke":
        access.tokens.revoke(word)
    elif verb == "remove":
        access.people.remove(word)
    else:
        try:
            access.login(word, "not the password", "10.0.0.1")
        except NotKnown:
            pass
    print("done", flush=True)
"""


def test_another_process_sees_at_once_what_was_revoked_removed_and_guessed(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    access = place.access()
    place.clock.now_us = time.time_ns() // 1000  # the other process has the real clock
    for name in ("ana", "bob", "eve"):
        access.people.add(name, PASSWORD)
    first, second = access.tokens.create("bob"), access.tokens.create("bob")
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def tell(*words: str) -> None:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdin.write(" ".join(words) + "\n")
            other.stdin.flush()
            assert other.stdout.readline() == "done\n"

        for token in (first, second):
            assert access.actor_of_token(token.text).name == "bob"
        tell("revoke", first.id)
        with pytest.raises(NotKnown):
            access.actor_of_token(first.text)
        access.actor_of_token(second.text)
        tell("remove", "bob")
        with pytest.raises(NotKnown):
            access.actor_of_token(second.text)
        for _ in range(5):
            tell("guess", "eve")
        with pytest.raises(Throttled):
            access.login("eve", PASSWORD, "10.0.0.1")
        access.login("ana", PASSWORD, "10.0.0.2")
        other.stdin.close()
        assert other.wait(30) == 0
    place.close()
