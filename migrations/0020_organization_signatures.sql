-- Which generation of an organization's signing secret is in use. The secret itself follows from it and a key of the service.
CREATE TABLE organization_signing (
    org_id UUID PRIMARY KEY REFERENCES organization (id),
    generation BIGINT NOT NULL,
    rotated_at TIMESTAMPTZ NOT NULL
);
