"""Folders of before: people of a demo are marked by the label of their tokens, and tokens with slow hashes revoked."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tacit.server.access import Access, Hasher
from tacit.server.database import FILE_NAME, open_database


def test_people_of_an_older_demo_are_marked_when_its_folder_is_opened(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    access = Access(database, hasher=Hasher(is_cheap=True))
    for name, label in (("owner", "made by tacit demo"), ("bob", "mine")):
        access.people.add(name, "long enough to pass")
        access.tokens.create(name, label=label)
    database.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:  # as the first version had it
        connection.executescript(
            "ALTER TABLE people DROP COLUMN is_demo; DROP TABLE answer_bytes; DROP TABLE answer_reservations; "
            "DROP INDEX releases_by_time; ALTER TABLE releases DROP COLUMN bytes; ALTER TABLE jobs DROP COLUMN bytes; "
            "ALTER TABLE jobs DROP COLUMN datasets;"
        )
        connection.execute("DELETE FROM migrations WHERE version >= 2")
        connection.execute("UPDATE tokens SET secret_hash = '$argon2id$v=19$m=1024' WHERE person = 'bob'")
    connection.close()
    database = open_database(tmp_path)
    assert database.read("SELECT name FROM people WHERE is_demo = 1") == [("owner",)]
    assert Access(database, hasher=Hasher(is_cheap=True)).people.has_demo()
    assert database.read("SELECT person FROM tokens WHERE is_revoked = 1") == [("bob",)], "hashed as they were before"
    database.close()
