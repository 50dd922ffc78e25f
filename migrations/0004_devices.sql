-- What people write on a device; readings of its controller never touch it.
-- tags: an array of texts. state: active or maintenance.
ALTER TABLE device ADD COLUMN display_name TEXT;
ALTER TABLE device ADD COLUMN notes TEXT;
ALTER TABLE device ADD COLUMN tags JSONB NOT NULL DEFAULT '[]';
ALTER TABLE device ADD COLUMN state TEXT NOT NULL DEFAULT 'active';

-- Where a credential is good: not secret, and only what its test takes when it is not told otherwise.
ALTER TABLE credential ADD COLUMN host TEXT;
ALTER TABLE credential ADD COLUMN port BIGINT;
ALTER TABLE credential ADD COLUMN tls JSONB;
