-- Findings of attacks, beside the permits that they judge; their documents are in the journal. A ledger of the version
-- before has no record of any, so the empty table follows from its journal, and no cached row is written anew.

CREATE TABLE findings (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    permit TEXT REFERENCES permits (id),
    record BIGINT NOT NULL REFERENCES journal (number),
    seal TEXT NOT NULL
);

CREATE INDEX findings_of_dataset ON findings (dataset);
