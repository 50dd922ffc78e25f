-- contents_digest: of the fields and the reference by which the vendor knows the object. A reading compares it without
-- loading either; empty where the object has not been written since.
ALTER TABLE model_object ADD COLUMN contents_digest TEXT NOT NULL DEFAULT '';
