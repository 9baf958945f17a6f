-- The journal decides; every other table but `contents` is a cache of it.

CREATE TABLE head (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number BIGINT NOT NULL,
    hash TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    checkpoint BIGINT NOT NULL
);

INSERT INTO head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 0, 0);

CREATE TABLE journal (
    number BIGINT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    behind_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);

-- totals are whole numbers as text: they do not fit into 64 bits
CREATE TABLE scopes (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    definition TEXT NOT NULL,
    totals TEXT NOT NULL,
    record BIGINT NOT NULL REFERENCES journal (number),
    seal TEXT NOT NULL
);

CREATE INDEX scopes_of_dataset ON scopes (dataset);

CREATE TABLE permits (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    key TEXT,
    record BIGINT NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
    is_refunded INTEGER NOT NULL CHECK (is_refunded IN (0, 1)),
    answer_sha256 TEXT,
    note TEXT NOT NULL
);

CREATE UNIQUE INDEX permits_by_key ON permits (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX permits_open ON permits (record) WHERE state = 'reserved';

CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    analyst TEXT NOT NULL,
    record BIGINT NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('filed', 'granted', 'declined')),
    decision BIGINT REFERENCES journal (number)
);

CREATE INDEX requests_by_record ON requests (record);

CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    bytes BYTEA NOT NULL
);

CREATE TABLE answers (
    plan_sha256 TEXT NOT NULL,
    data_version TEXT NOT NULL,
    permit TEXT NOT NULL REFERENCES permits (id),
    sha256 TEXT NOT NULL REFERENCES contents (sha256),
    PRIMARY KEY (plan_sha256, data_version)
);
