-- whose password and token were printed by tacit demo; they are for one machine until they have another password
ALTER TABLE people ADD COLUMN is_demo INTEGER NOT NULL DEFAULT 0 CHECK (is_demo IN (0, 1));

UPDATE people SET is_demo = 1 WHERE name IN (SELECT person FROM tokens WHERE label = 'made by tacit demo');
