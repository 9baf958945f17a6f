-- Every cached row gets a seal over all of its columns. What was cached is dropped: opening a ledger whose `caches` have
-- another version than the program's writes them anew from the journal.

DROP TABLE answers;
DROP TABLE requests;
DROP TABLE permits;
DROP TABLE scopes;

CREATE TABLE caches (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL
);

INSERT INTO caches VALUES (1, 0);

CREATE TABLE scopes (
    dataset TEXT NOT NULL,
    key TEXT PRIMARY KEY,
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
    note TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE UNIQUE INDEX permits_by_key ON permits (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX permits_open ON permits (record) WHERE state = 'reserved';

CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    analyst TEXT NOT NULL,
    record BIGINT NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('filed', 'granted', 'declined')),
    decision BIGINT REFERENCES journal (number),
    seal TEXT NOT NULL
);

CREATE INDEX requests_by_record ON requests (record);

CREATE TABLE answers (
    plan_sha256 TEXT NOT NULL,
    data_version TEXT NOT NULL,
    permit TEXT NOT NULL REFERENCES permits (id),
    sha256 TEXT NOT NULL REFERENCES contents (sha256),
    seal TEXT NOT NULL,
    PRIMARY KEY (plan_sha256, data_version)
);
