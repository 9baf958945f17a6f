-- the data sets that a job is about, as JSON; of older jobs they are unknown, and only a grant on everything shows those
ALTER TABLE jobs ADD COLUMN datasets TEXT NOT NULL DEFAULT '[]';
