//! Events of sets over several controllers. Those of their changes are the changes' own.

heddle_core::events! { pub EVENTS {
    SET_STAGED = "controller.change_set.staged", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_APPLY_STARTED = "controller.change_set.apply_started", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_AWAITING_CONFIRM = "controller.change_set.awaiting_confirm", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_CONFIRMED = "controller.change_set.confirmed", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_COMMITTED = "controller.change_set.committed", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_COMPENSATING = "controller.change_set.compensating", "change", High,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_COMPENSATED = "controller.change_set.compensated", "change", High,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_STUCK = "controller.change_set.stuck", "change", High,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_DISCARDED = "controller.change_set.discarded", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
    SET_EXPIRED = "controller.change_set.expired", "change", Normal,
        { "set_id": "uuid", "site_id": "uuid", "state": "string", "user_id": "uuid?", "plan_hash": "string?" };
} }
