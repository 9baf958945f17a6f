-- The journal decides; every other table but `contents` is a cache of it.

CREATE TABLE head (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL
) STRICT;

INSERT INTO head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 0, 0);

CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    behind_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

-- totals are whole numbers as text: they do not fit into 64 bits
CREATE TABLE scopes (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    definition TEXT NOT NULL,
    totals TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES journal (number),
    seal TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX scopes_of_dataset ON scopes (dataset);

CREATE TABLE permits (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    key TEXT,
    record INTEGER NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
    is_refunded INTEGER NOT NULL CHECK (is_refunded IN (0, 1)),
    answer_sha256 TEXT,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX permits_by_key ON permits (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX permits_open ON permits (record) WHERE state = 'reserved';

CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    analyst TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('filed', 'granted', 'declined')),
    decision INTEGER REFERENCES journal (number)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_record ON requests (record);

CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE answers (
    plan_sha256 TEXT NOT NULL,
    data_version TEXT NOT NULL,
    permit TEXT NOT NULL REFERENCES permits (id),
    sha256 TEXT NOT NULL REFERENCES contents (sha256),
    PRIMARY KEY (plan_sha256, data_version)
) STRICT, WITHOUT ROWID;
