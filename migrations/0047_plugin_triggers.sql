-- author_id: who last set the plugin in the organization. What calls it by itself runs with this user's rights; where it is
-- empty, the plugin was set before anything did.
-- configured: the package and the revision of the settings that the plugin was last told of. problem: why it could not take
-- them. configure_at: when it is told next. configure_owner: the process that tells it; when it is gone, it is told at once.
-- after_seq: events up to here came before it was switched on.
ALTER TABLE plugin_organization ADD COLUMN author_id UUID;
ALTER TABLE plugin_organization ADD COLUMN configured TEXT NOT NULL DEFAULT '';
ALTER TABLE plugin_organization ADD COLUMN problem TEXT;
ALTER TABLE plugin_organization ADD COLUMN configure_at TIMESTAMPTZ;
ALTER TABLE plugin_organization ADD COLUMN configure_owner UUID;
ALTER TABLE plugin_organization ADD COLUMN after_seq BIGINT NOT NULL DEFAULT 0;
CREATE INDEX plugin_organization_configure ON plugin_organization (configure_at) WHERE configure_at IS NOT NULL;
CREATE INDEX plugin_organization_owner ON plugin_organization (configure_owner) WHERE configure_owner IS NOT NULL;

-- How far each trigger of a plugin has come in an organization. A row is there from the first event that it wants.
-- seq: events up to here are done. wanted_seq: the last event that it wants. single_seq: events up to here are handed over
-- one by one, since some of them failed together. due_at: when they are handed over next; empty
-- where all are done. Who hands them over moves it on. owner: the process that does; when it is gone, they are due at once.
-- attempts: how often handing over the next ones failed, for the last time for this problem.
CREATE TABLE plugin_trigger (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    trigger_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    wanted_seq BIGINT NOT NULL,
    single_seq BIGINT NOT NULL DEFAULT 0,
    due_at TIMESTAMPTZ,
    owner UUID,
    attempts BIGINT NOT NULL,
    problem TEXT,
    called_at TIMESTAMPTZ,
    PRIMARY KEY (org_id, plugin_uid, trigger_id)
);
CREATE INDEX plugin_trigger_due ON plugin_trigger (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX plugin_trigger_owner ON plugin_trigger (owner) WHERE owner IS NOT NULL;
CREATE INDEX plugin_trigger_plugin ON plugin_trigger (plugin_uid);

-- Timers that plugins set. scheduled_at: the time that it comes at. due_at: when its trigger is called next: later than
-- that after a failure, and while a process is calling it, which is its owner.
CREATE TABLE plugin_timer (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    name TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    times JSONB NOT NULL,
    scheduled_at TIMESTAMPTZ NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    owner UUID,
    attempts BIGINT NOT NULL,
    problem TEXT,
    PRIMARY KEY (org_id, plugin_uid, name)
);
CREATE INDEX plugin_timer_due ON plugin_timer (due_at);
CREATE INDEX plugin_timer_owner ON plugin_timer (owner) WHERE owner IS NOT NULL;
CREATE INDEX plugin_timer_plugin ON plugin_timer (plugin_uid);
