-- Names of the fields of a credential beside user name, password and API key; their values are in the sealed secret.
ALTER TABLE credential ADD COLUMN field_names JSONB NOT NULL DEFAULT '[]';
