-- Who may do what, who tried, and what a server keeps beside the ledger. Empty texts stand for "everywhere".

CREATE TABLE people (
    name TEXT PRIMARY KEY,
    folded TEXT NOT NULL UNIQUE,
    password_hash TEXT,
    is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    created_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE grants (
    person TEXT NOT NULL REFERENCES people (name),
    role TEXT NOT NULL,
    dataset TEXT NOT NULL,
    table_name TEXT NOT NULL,
    PRIMARY KEY (person, role, dataset, table_name)
) STRICT;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    label TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    dataset TEXT NOT NULL,
    created_at_us INTEGER NOT NULL,
    expires_at_us INTEGER NOT NULL,
    used_at_us INTEGER,
    is_revoked INTEGER NOT NULL CHECK (is_revoked IN (0, 1))
) STRICT;

CREATE INDEX tokens_of_person ON tokens (person);

-- what a cookie holds is random in full, so a plain digest of it is enough
CREATE TABLE browsers (
    sha256 TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    created_at_us INTEGER NOT NULL,
    used_at_us INTEGER NOT NULL,
    expires_at_us INTEGER NOT NULL
) STRICT;

CREATE INDEX browsers_of_person ON browsers (person);

-- keys are digests: somebody may have typed a password where the name goes
CREATE TABLE failures (
    key TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    forgotten_at_us INTEGER NOT NULL
) STRICT;

CREATE INDEX failures_to_forget ON failures (forgotten_at_us);

CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    dataset TEXT NOT NULL,
    table_name TEXT NOT NULL,
    person TEXT NOT NULL,
    code TEXT NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;

CREATE INDEX audit_by_time ON audit (at_us);

CREATE TABLE used_states (
    sha256 TEXT PRIMARY KEY,
    expires_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE releases (
    permit TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    datasets TEXT NOT NULL,
    asked_at_us INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE INDEX releases_of_person ON releases (person, asked_at_us);

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    process TEXT,
    state TEXT NOT NULL,
    asked_at_us INTEGER NOT NULL,
    changed_at_us INTEGER NOT NULL,
    expected_s REAL,
    is_cancelled INTEGER NOT NULL DEFAULT 0,
    document TEXT
) STRICT;

CREATE INDEX jobs_of_person ON jobs (person, asked_at_us);
