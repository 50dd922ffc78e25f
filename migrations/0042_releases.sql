-- release_state: what the package that serves a controller says of the version that it runs. allowed_release: the version
-- with which a person lets changes be applied although the package was not tested with it.
ALTER TABLE controller ADD COLUMN release_state TEXT NOT NULL DEFAULT 'unknown';
ALTER TABLE controller ADD COLUMN allowed_release TEXT;
