"""Makes facts.json from the contract of the vendor's API, its overlay, and the facts of older controllers that the
contract lacks.

    python3 facts.py CONTRACT OVERLAY ../../../adapters/opnsense/lacking.json > facts.json

Keeps only what the simulated firewall decides by: routes, names, types, ranges, enumerations, references. The output
has one line per list of items and one per controller, so that a later contract shows as a short difference.
"""

import json
import re
import sys

# Series whose differences are kept: a route or a field that came with the newer one carries "from", a field that left
# with it "until".
NEWER = "26.7.2"
OLDER = "26.1"

# Items that have no fields in the contract because their controllers build the request by hand.
MODEL_PATHS = {
    "firewall/filter": {"rule": "rules.rule"},
    "firewall/source_nat": {"rule": "snatrules.rule"},
    "firewall/d_nat": {"rule": "rule"},
    "ipsec/connections": {"connection": "Connections.Connection"},
    "routing/settings": {"gateway": "gateway_item"},
    "freeradius/client": {"client": "clients.client"},
    "freeradius/ldapgroup": {"ldapgroup": "ldapgroups.ldapgroup"},
    "freeradius/proxy": {
        "homeserverpool": "homeserverpools.homeserverpool",
        "homeserver": "homeservers.homeserver",
        "realm": "realms.realm",
    },
    "freeradius/user": {"user": "users.user"},
}
# Routes for which the contract names the list that they also clear.
ALSO_CLEARS = {("unbound/settings", "del_host_override"): "hosts.host"}
# Items that CSV files and dumps carry.
FILES = {
    "kea/dhcpv4": "reservations.reservation",
    "kea/dhcpv6": "reservations.reservation",
    "dnsmasq/settings": "hosts",
    "trafficshaper/settings": {"pipes": "pipes.pipe", "queues": "queues.queue"},
    "firewall/category": "categories.category",
    "firewall/npt": "npt.rule",
    "firewall/one_to_one": "onetoone.rule",
    "firewall/source_nat": "snatrules.rule",
    "firewall/d_nat": "rule",
    "firewall/filter": "rules.rule",
    "auth/user": "user",
}
# Settings of controllers that name no model.
NAMELESS = {
    "diagnostics/netflow": ("Diagnostics/Netflow", "netflow"),
    "freeradius/eap": ("Freeradius/Eap", "eap"),
    "freeradius/general": ("Freeradius/General", "general"),
}
# Unique beside the natural key.
ALSO_UNIQUE = {
    "Kea/KeaDhcpv4:reservations.reservation": [["ip_address"]],
    "Kea/KeaDhcpv6:reservations.reservation": [["ip_address"]],
    "Kea/KeaDhcpv4:ha_peers.peer": [["url"]],
    "Kea/KeaDhcpv6:ha_peers.peer": [["url"]],
    "IPsec/Swanctl:VTIs.VTI": [],
    "OpenVPN/OpenVPN:Instances.Instance": [["vpnid"]],
}
# Fields that the older series has and the newer one lost.
OLD_FIELDS = {
    "Routes/Route:route": [{"name": "disabled", "type": "bool01", "required": True, "default": "0"}],
    "Unbound/Unbound:hosts.host": [{"name": "aliascount", "type": "string", "volatile": True}],
}
# Routes that left before the newer series, with their optional and required path values.
OLD_ROUTES = {"savepoint": (0, 0), "cancel_rollback": (1, 1), "revert": (1, 1)}


def command_key(command):
    return command.replace("_", "").lower()


def path_of(route):
    parts = route["path"].removeprefix("/api/").replace("[/", "/").replace("]", "").split("/")
    need = sum(1 for p in route.get("path_params") or [] if p["required"])
    return parts[0] + "/" + parts[1], parts[2], need, len(parts) - 3


def field(f):
    out = {"name": f["name"], "type": f["type"]}
    if f["type"] == "string" and f.get("field_class") in ("UpdateOnlyTextField",):
        out["type"] = "secret-write-only"
    if f.get("field_class") == "AutoNumberField":
        out["type"] = "auto-number"
    if f.get("field_class") == "CertificateField":
        out["type"] = "cert-refid"
    if f["required"]:
        out["required"] = True
    if f["type"] != "bool01" and f.get("enum"):
        # Names of groups of choices stand where the choices are known only on the device.
        options = [o for o in f["enum"] if not o.startswith("optgroup")]
        if options:
            out["options"] = options
        else:
            out["type"] = "enum-runtime"
    for name, key in (("default", "default"), ("min", "min"), ("max", "max")):
        if f.get(name) is not None:
            out[key] = str(f[name])
    if f.get("pattern"):
        out["pattern"] = pattern(f["pattern"])
    for name in ("multiple", "volatile"):
        if f.get(name):
            out[name] = True
    if f.get("read_as"):
        out["map"] = True
    if f.get("relates_to"):
        out["ref"] = f["relates_to"]
    return out


def pattern(text):
    """A pattern without delimiters and flags; the anchors of the vendor's dialect become common ones."""
    body, flags = text[1:].rsplit("/", 1)
    body = body.replace("\\A", "^").replace("\\z", "$").replace("\\/", "/").replace("\\#", "#").replace("\\=", "=")
    # A bound this large means no bound, and would make a compiled pattern huge.
    body = re.sub(r"\{1,\d{5,}\}", "+", body)
    return ("(?i)" if "i" in flags else "") + body


def nodes_of(contract, lacking):
    nodes = {}
    for key, fields in lacking["fields"].items():
        nodes[key] = [dict(f) for f in fields]
        for f in nodes[key]:
            if "pattern" in f:
                f["pattern"] = pattern(f["pattern"])
            if "refers" in f:
                f["ref"] = f.pop("refers")
    for route in contract["routes"]:
        if route["operation"] not in ("create", "update", "settings-write") or not route.get("model"):
            continue
        if route["operation"] == "update" and not route.get("model_path"):
            continue
        key = f"{route['model']}:{route.get('model_path') or ''}"
        fields = [field(f) for f in route["fields"]]
        if len(fields) > len(nodes.get(key, [])):
            nodes[key] = fields
    for change in contract["field_changes"]:
        if change["to"] == NEWER:
            for f in nodes.get(change["item"], []):
                if f["name"] in change["added"]:
                    f["from"] = True
    for key, fields in OLD_FIELDS.items():
        nodes[key] += [dict(f, until=True) for f in fields]
    for key, names in lacking["sorted"].items():
        for f in nodes[key]:
            if f["name"] in names:
                f["sorted"] = True
    names = {key.lower(): key for key in nodes}
    for fields in nodes.values():
        for f in fields:
            refs = [r.removeprefix("OPNsense.").replace(".", "/", 1).lower() for r in f.pop("ref", [])]
            refs = [names[r] for r in refs if r in names]
            if refs:
                f["ref"] = refs
    return nodes


def controllers_of(contract, nodes, lacking):
    controllers = {}
    for route in contract["routes"]:
        path, command, need, most = path_of(route)
        controller = controllers.setdefault(path, {})
        if route.get("plugin"):
            controller["plugin"] = route["plugin"]
        if route.get("model"):
            controller["model"] = route["model"]
        controller["area"] = route["area"]
        out = {"op": route["operation"]}
        model_path = ALSO_CLEARS.get((path, command), route.get("model_path"))
        if not model_path and route["operation"] in ("list", "create", "update", "delete", "toggle", "read", "move"):
            for noun, found in sorted(MODEL_PATHS.get(path, {}).items(), key=lambda i: -len(i[0])):
                if noun in command:
                    model_path = found
                    break
        if command.startswith(("download", "upload")) and path in FILES:
            found = FILES[path]
            model_path = found if isinstance(found, str) else found[command.split("_")[1]]
        if model_path and route.get("model"):
            out["node"] = f"{route['model']}:{model_path}"
            nodes.setdefault(out["node"], [])
        elif route["operation"] == "settings-write" or (command in ("get", "getconfig") and route.get("response_root_key")):
            if route.get("model"):
                out["node"] = f"{route['model']}:"
                nodes.setdefault(out["node"], [])
        older = lacking["items"].get(path, {})
        noun = next((noun for noun in older if command.endswith("_" + noun)), None)
        root = route.get("body_root_key") or route.get("response_root_key") or (noun and older[noun][0])
        if root:
            out["root"] = root
        if need:
            out["need"] = need
        if most:
            out["most"] = most
        if "POST" in route["method"] and "GET" not in route["method"]:
            out["post"] = True
        # Pages and words to search for are only taken from a body.
        if (route.get("note") or "").startswith("paging"):
            out["live"] = True
        if route.get("apply_call"):
            out["apply"] = apply_key(route["apply_call"])
        if route.get("safe_delete"):
            out["safe"] = True
        if route.get("requires_full_admin"):
            out["full"] = True
        if route["since"] == NEWER:
            out["from"] = True
        controller.setdefault("commands", {})[command_key(command)] = out
    for removed in contract["removed_routes"]:
        path, command = removed["path"].removeprefix("/api/").rsplit("/", 1)
        if removed["last_seen_in"] == OLDER and path in controllers:
            need, most = OLD_ROUTES.get(command, (0, 1))
            out = {"op": "action", "until": True, "post": True, "need": need, "most": most}
            controllers[path]["commands"][command_key(command)] = {k: v for k, v in out.items() if v}
    return controllers


def apply_key(call):
    path, command = call.removeprefix("POST /api/").rsplit("/", 1)
    return f"{path}/{command_key(command)}"


def unique_of(overlay, nodes, controllers):
    unique = {}
    for item in overlay["items"]:
        route = (item["routes"] or {}).get("create") or (item["routes"] or {}).get("update")
        if item["shape"] != "item" or not route:
            continue
        parts = route.split("/api/")[1].replace("[", "").split("/")
        node = controllers.get("/".join(parts[:2]), {}).get("commands", {}).get(command_key(parts[2]), {}).get("node")
        names = {f["name"] for f in nodes.get(node, [])}
        key = item["natural_key"]
        if item["key_is"] == "unique at the vendor" and key and set(key) <= names:
            unique[node] = [key]
    for node, keys in ALSO_UNIQUE.items():
        unique[node] = unique.get(node, []) + keys
    return {node: keys for node, keys in unique.items() if keys}


def name_settings(contract):
    for route in contract["routes"]:
        path, command, _, _ = path_of(route)
        if path in NAMELESS and command in ("get", "set", "getconfig", "setconfig"):
            route["model"], root = NAMELESS[path]
            route["body_root_key" if command.startswith("set") else "response_root_key"] = root


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    name_settings(contract)
    overlay = json.load(open(sys.argv[2], encoding="utf-8"))
    lacking = json.load(open(sys.argv[3], encoding="utf-8"))
    nodes = nodes_of(contract, lacking)
    controllers = controllers_of(contract, nodes, lacking)
    unique = unique_of(overlay, nodes, controllers)

    def lines(table):
        rows = (f"{json.dumps(key)}:{json.dumps(table[key], separators=(',', ':'))}" for key in sorted(table))
        return "{\n" + ",\n".join(rows) + "\n}"

    print('{"nodes":' + lines(nodes) + ',\n"controllers":' + lines(controllers) + ',\n"unique":' + lines(unique) + "}")


main()
