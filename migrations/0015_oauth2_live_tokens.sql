-- Of the tokens of a grant most are spent: those that are not are found without reading them.
CREATE INDEX oauth2_token_live ON oauth2_token (grant_id, kind, issued_at) WHERE ended_at IS NULL;
