-- Names and emails are compared in one folded form, which the program makes: the databases fold in different ways.
-- Absent until the program has filled it in, which it does at its next start; a row without it cannot log in.
ALTER TABLE app_user ADD COLUMN username_folded TEXT;
ALTER TABLE app_user ADD COLUMN email_folded TEXT;
DROP INDEX app_user_username;
DROP INDEX app_user_email;
CREATE UNIQUE INDEX app_user_username ON app_user (username_folded) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX app_user_email ON app_user (email_folded) WHERE deleted_at IS NULL;
CREATE INDEX app_user_unfolded ON app_user (id) WHERE username_folded IS NULL;
