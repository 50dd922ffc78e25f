-- Whose line it is, where an organization wrote it ('fabric.log'): it reads its own lines and no others.
ALTER TABLE log_line ADD COLUMN org_id UUID;
CREATE INDEX log_line_org ON log_line (org_id, at, id) WHERE org_id IS NOT NULL;
