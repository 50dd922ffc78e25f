-- What staged a change where no person did by hand: {"kind", "connection_id", "run_id", "step"}.
ALTER TABLE change ADD COLUMN staged_via JSONB;

-- The last attempts to send a delivery, the oldest first: [{"at", "status", "error"}]. Sending it again keeps them.
ALTER TABLE webhook_delivery ADD COLUMN history JSONB NOT NULL DEFAULT '[]';
