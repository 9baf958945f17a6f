-- How many bytes of answers people have had stored, and what questions under way may still add.

CREATE TABLE answer_bytes (
    person TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL,
    answers INTEGER NOT NULL
) STRICT;

CREATE TABLE answer_reservations (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;

-- the sizes of documents, by which the oldest are removed
ALTER TABLE releases ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE releases SET bytes = LENGTH(document);
UPDATE jobs SET bytes = COALESCE(LENGTH(document), 0);
CREATE INDEX releases_by_time ON releases (asked_at_us);
