-- How many bytes of answers people have had stored, and what questions under way may still add.

CREATE TABLE answer_bytes (
    person TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL,
    answers BIGINT NOT NULL
);

CREATE TABLE answer_reservations (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    at_us BIGINT NOT NULL
);

-- the sizes of documents, by which the oldest are removed
ALTER TABLE releases ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE releases SET bytes = LENGTH(document);
UPDATE jobs SET bytes = COALESCE(LENGTH(document), 0);
CREATE INDEX releases_by_time ON releases (asked_at_us);
