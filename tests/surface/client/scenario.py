"""The main job, done with a client that was generated from the served document.

Arguments: the server's address, the router's address. The secrets come from
the environment. Prints what came of it as JSON.
"""

import importlib
import json
import os
import pkgutil
import sys
import time

import heddle_client
from heddle_client import AuthenticatedClient, Client
from heddle_client.api.audit_log import list_audit_entries
from heddle_client.api.authentication import log_in
from heddle_client.api.changes import apply_change, confirm_change
from heddle_client.api.controllers import create_controller, sync_controller
from heddle_client.api.credentials import create_credential
from heddle_client.api.devices import list_devices
from heddle_client.api.gateway_openwrt_firewall import stage_openwrt_firewall_change
from heddle_client.api.sites import create_site, get_site
from heddle_client.models import (
    ApiError,
    ApplyBody,
    ControllerCreate,
    CredentialCreate,
    Login,
    Operation,
    SiteCreate,
    StageBody,
    StageBodyPayload,
)


def done(response, status):
    """What was answered, when it was answered with this status."""
    if response.status_code != status:
        sys.exit(f"expected {status}, got {response.status_code}: {response.content.decode()}")
    if response.parsed is None:
        sys.exit(f"the client cannot read {response.content.decode()}")
    return response.parsed


def import_everything():
    modules = [module.name for module in pkgutil.walk_packages(heddle_client.__path__, "heddle_client.")]
    for name in modules:
        importlib.import_module(name)
    return len(modules)


def devices_of(client, controller):
    """The devices, once the controller was read."""
    for _ in range(200):
        page = done(list_devices.sync_detailed(client=client, controller_id=controller, per_page=100), 200)
        if page.total > 0:
            return page.items
        time.sleep(0.1)
    sys.exit("the controller's devices did not appear")


def main(server, router):
    modules = import_everything()
    public = Client(base_url=server)
    login = Login(login="ada", password=os.environ["PASSWORD"])
    tokens = done(log_in.sync_detailed(client=public, body=login), 200)
    client = AuthenticatedClient(base_url=server, token=tokens.access_token, timeout=60)

    site = done(create_site.sync_detailed(client=client, body=SiteCreate(name="Generated")), 201)
    credential = CredentialCreate(name="router", username="root", password=os.environ["ROUTER_PASSWORD"])
    credential = done(create_credential.sync_detailed(client=client, body=credential), 201)
    controller = ControllerCreate(
        name="edge", site_id=site.id, vendor="openwrt", url=router, credential_id=credential.id
    )
    controller = done(create_controller.sync_detailed(client=client, body=controller), 201)
    done(sync_controller.sync_detailed(controller.id, client=client), 202)
    devices = devices_of(client, controller.id)

    payload = StageBodyPayload.from_dict(
        {"name": "Allow-Generated", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT"}
    )
    change = done(
        stage_openwrt_firewall_change.sync_detailed(
            controller.id,
            "openwrt.firewall.rule",
            client=client,
            body=StageBody(payload=payload),
            operation=Operation.CREATE,
        ),
        201,
    )
    body = ApplyBody(force=True, plan_hash=change.plan.hash_, confirm_within_secs=60)
    applied = done(apply_change.sync_detailed(change.id, client=client, body=body), 200)
    confirmed = done(confirm_change.sync_detailed(change.id, client=client), 200)
    audit = done(list_audit_entries.sync_detailed(client=client, per_page=200, target_id=change.id), 200)

    absent = done(get_site.sync_detailed(controller.id, client=client), 404)
    if not isinstance(absent, ApiError) or absent.error.type_ != "not_found":
        sys.exit(f"an error is not read as one: {absent}")
    outcome = {
        "modules": modules,
        "site": str(site.id),
        "device_kinds": sorted({device.kind for device in devices}),
        "change": str(change.id),
        "applied": applied.outcome.state.value,
        "confirmed": confirmed.outcome.state.value,
        "actions": [entry.action for entry in reversed(audit.items)],
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
