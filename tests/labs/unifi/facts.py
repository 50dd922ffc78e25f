"""Makes facts.json from the contract of the vendor's interface.

    python3 facts.py CONTRACT > facts.json

Keeps only what the simulated console decides by: routes, names of fields, types, ranges, enumerations, patterns, the
conditions under which a field exists, filters of lists, and the release that brought a route or took it away. The
output has one line for each collection, so that a later contract shows as a short difference.

Keys of a field: n its name (a path in the integration interface), t its type (s text, i integer, b boolean, o object, a
anything, u uuid, d number; a star before it for a list), e enumeration, p number of its pattern, l and h least and
greatest value or length, w the condition, r required, since its release, f the fields inside.
"""

import json
import re
import sys

TYPES = {"string": "s", "integer": "i", "boolean": "b", "object": "o", "any": "a", "array": "*a", "number": "d"}
# Patterns with a look around, which the engine of the simulator lacks, and those that the contract cuts off.
HOST = r"([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9-]{1,63}|^$"
IP4 = r"(([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
PORTS = r"[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?(,[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?){0,}"
NO_PATTERN = {"^[0-9][0-9]?$|^", ".*"}

# Fields that later releases define beside those of the contract: collection, name, type, since.
MORE = [
    ("networkconf", "dhcp_relay_servers", "*s", None),
    ("networkconf", "wireguard_id", "i", None),
    ("networkconf", "upnp_enabled", "b", None),
    ("networkconf", "upnp_nat_pmp_enabled", "b", None),
    ("networkconf", "upnp_secure_mode", "b", None),
    ("networkconf", "upnp_wan_interface", "s", None),
    ("networkconf", "wan_egress_qos_enabled", "b", None),
    ("networkconf", "ipv6_enabled", "b", None),
    ("networkconf", "ip_aliases", "*s", None),
    ("networkconf", "single_network_lan", "s", None),
    ("networkconf", "routing_table_id", "i", None),
    ("networkconf", "local_port", "i", None),
    ("wlanconf", "roaming_assistant_enabled", "b", "10.4"),
    ("wlanconf", "roaming_assistant_na_rssi", "i", "10.4"),
    ("wlanconf", "roaming_assistant_6e_rssi", "i", "10.4"),
    ("wlanconf", "vlan_id", "i", None),
    ("wlanconf", "wlangroup_id", "s", None),
    ("user", "dev_id_override", "i", None),
    ("user", "noted", "b", None),
]
SETTINGS_MORE = {
    "device_supervision": ([("enabled", "b")], "10.4"),
    "igmp_snooping": ([("enabled", "b"), ("network_ids", "*s"), ("querier_addresses", "a")], "10.3"),
    "ips_suppression": ([("suppression", "a"), ("alerts", "*a"), ("whitelist", "*a")], "10.4"),
    "usg_geo": ([("enabled", "b"), ("mode", "s"), ("countries", "*s")], "10.4"),
}
# Routes that clients use beside those of the contract.
V2_MORE = {
    "trafficrules": "action:s=ALLOW|BLOCK app_category_ids:*s app_ids:*s bandwidth_limit:o description:s domains:*o "
    "enabled:b ip_addresses:*o ip_ranges:*o matching_target:s network_ids:*s regions:*s schedule:o target_devices:*o",
    "trafficroutes": "description:s domains:*o enabled:b fallback:b interface:s ip_addresses:*o ip_ranges:*o "
    "kill_switch_enabled:b matching_target:s=DOMAIN|INTERNET|IP|REGION network_id:s next_hop:s regions:*s "
    "target_devices:*o",
    "nat": "description:s destination_filter:o enabled:b exclude:b in_interface:s ip_address:s ip_version:s=IPV4|IPV6 "
    "is_predefined:b logging:b out_interface:s port:s pppoe_use_base_interface:b protocol:s rule_index:i "
    "setting_preference:s=auto|manual source_filter:o type:s=DNAT|SNAT|MASQUERADE",
    "qos-rules": "destination:o download_burst:s download_limit_kbps:i dscp_code:i enabled:b index:i name:s "
    "network_id:s objective:s=LIMIT|PRIORITIZE|PRIORITIZE_AND_LIMIT schedule:o source:o upload_burst:s "
    "upload_limit_kbps:i wan_or_vpn_network:s",
    "network-members-group": "members:*s name:s type:s=CLIENTS",
    "object-oriented-network-config": "enabled:b name:s qos:o route:o secure:o target_type:s=CLIENTS|GROUPS|NETWORKS "
    "targets:*s",
    "power-supervisors": "client_mac:s enabled:b name:s power_sources:*o",
    "bgp/config": "config:s description:s enabled:b frr_bgpd_config:s uploaded_file_name:s",
    "ospf/router": "areas:*o default_route:o enabled:b interfaces:*o router_id:s",
    "acl-rules": "acl_index:i action:s=ALLOW|BLOCK enabled:b name:s traffic_source:o traffic_destination:o type:s",
}
# Releases of single fields of the integration interface.
SINCE = {
    ("wifi/broadcasts", "dnsAssistanceConfiguration"): "10.3",
    ("wifi/broadcasts", "securityConfiguration.encryption"): "10.3",
    ("wifi/broadcasts", "handoffSuggestionsConfiguration"): "10.4",
    ("wifi/broadcasts", "channel2gLockedTo6"): "10.4",
    ("wifi/broadcasts", "dtimPeriod2gLockedTo3"): "10.4",
}
# What a release of the integration interface before 10.1 has.
EARLY = ("info", "sites", "devices", "clients", "hotspot/vouchers", "networks")
UNTIL = {"tag": "10.4", "map": "10.4", "heatmap": "10.4", "heatmappoint": "10.4", "virtualdevice": "10.4"}
SETTINGS_UNTIL = {"evaluation_score": "10.4", "roaming_assistant": "10.4"}

patterns = []


def pattern_number(pattern):
    """The number of a pattern, None where it limits nothing."""
    if pattern in NO_PATTERN:
        return None
    if pattern.endswith("(truncated)"):
        if pattern.startswith("(([1-9][0-9]{0,3}"):
            pattern = PORTS
        elif pattern.startswith("^(([0-9]|[1-9][0-9]|1[0-9]{2}"):
            pattern = rf"{IP4}(\/([0-9]|[1-2][0-9]|3[0-2]))?(-{IP4})?|^$|any"
        else:
            return None
    if "(?!(?:15" in pattern:
        pattern = "([7-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-4])"
    elif "(?=" in pattern or "(?!" in pattern or "(?<" in pattern:
        pattern = HOST
    if pattern not in patterns:
        patterns.append(pattern)
    return patterns.index(pattern)


def kind(text):
    inner = re.fullmatch(r"array<(.*)>", text)
    if inner:
        return "*" + kind(inner.group(1))
    if text == "string(uuid)":
        return "u"
    return TYPES[text.split("(")[0]]


def short(field, name):
    made = {"n": name, "t": kind(field["type"])}
    if field.get("enum"):
        made["e"] = [str(value) for value in field["enum"]]
    elif "pattern" in field:
        number = pattern_number(field["pattern"])
        if number is not None:
            made["p"] = number
    for source, target in (("min", "l"), ("max", "h"), ("min_len", "l"), ("max_len", "h")):
        if source in field:
            made[target] = field[source]
    if field.get("when"):
        made["w"] = field["when"]
    if field.get("required"):
        made["r"] = True
    return made


def tree(fields):
    """Fields with dotted names, as a tree."""
    roots, by_path = [], {}
    for field in fields:
        path = field["name"].replace("[]", "")
        parent, _, name = path.rpartition(".")
        made = short(field, name or path)
        made.pop("r", None)
        by_path[path] = made
        holder = by_path.get(parent)
        if holder is None:
            roots.append(made)
        else:
            holder.setdefault("f", []).append(made)
    return roots


def words(text):
    fields = []
    for word in text.split():
        name, _, rest = word.partition(":")
        kind_of, _, values = rest.partition("=")
        field = {"n": name, "t": kind_of}
        if values:
            field["e"] = values.split("|")
        fields.append(field)
    return fields


def legacy(operations):
    rest, settings = {}, {}
    for operation in operations:
        if operation["surface"] != "legacy-v1" or not operation["fields"]:
            continue
        path = operation["path"].removeprefix("/api/s/{site}/")
        name = path.split("/")[1] if "/" in path else ""
        if path.startswith("rest/") and (operation["method"] == "POST" or path == "rest/device/{id}"):
            if name not in rest or len(operation["fields"]) > len(rest[name]["fields"]):
                rest[name] = {"fields": tree(operation["fields"])}
        elif path.startswith("set/setting/") and operation["method"] == "PUT" and path.count("/") == 2:
            settings[path.split("/")[2]] = {"fields": tree(operation["fields"])}
    for collection, name, type_of, since in MORE:
        if not any(field["n"] == name for field in rest[collection]["fields"]):
            rest[collection]["fields"].append({"n": name, "t": type_of} | ({"since": since} if since else {}))
    rest["portalfile"] = {"fields": words("filename:s name:s")}
    rest["rogueknown"] = {"fields": []}
    for key, (fields, since) in SETTINGS_MORE.items():
        settings[key] = {"fields": [{"n": name, "t": type_of} for name, type_of in fields], "since": since}
    for key, until in UNTIL.items():
        rest[key]["until"] = until
    for key, until in SETTINGS_UNTIL.items():
        settings[key]["until"] = until
    return rest, settings


def second(operations):
    made = {name: {"fields": words(text)} for name, text in V2_MORE.items()}
    for operation in operations:
        if operation["surface"] == "legacy-v2" and operation["method"] == "POST" and operation["fields"]:
            name = operation["path"].removeprefix("/v2/api/site/{site}/")
            if "system-log" not in name:
                made[name] = {"fields": tree(operation["fields"])}
    return made


def official(operations):
    made = {}
    for operation in operations:
        if operation["surface"] != "integration-v1":
            continue
        path = operation["path"].removeprefix("/integration/v1/").removeprefix("sites/{siteId}/")
        since = operation["seen_in"][0]
        since = "10.2" if since == "10.4.57" else "10.1"
        if path.split("/{")[0] in EARLY and operation["method"] in ("GET", "DELETE"):
            since = "9.5"
        if path.startswith(("devices/{deviceId}/", "clients/{clientId}/", "hotspot/vouchers")):
            since = "9.5"
        route = {"method": operation["method"], "path": path, "since": since}
        if operation["path"].startswith("/integration/v1/sites/{siteId}"):
            route["site"] = True
        if operation["success_status"] != 200:
            route["status"] = operation["success_status"]
        body = [field for field in operation["fields"] if field["in"] == "body"]
        key = path.split("/{")[0]
        if body:
            shown = []
            for field in body:
                one = short(field, field["name"])
                release = next((r for (c, n), r in SINCE.items() if c == key and field["name"].startswith(n)), None)
                if release:
                    one["since"] = release
                shown.append(one)
            route["body"] = shown
        if operation.get("filterable"):
            route["filter"] = {name: [use["type"], " ".join(use["ops"])] for name, use in operation["filterable"].items()}
        made.setdefault(key, []).append(route)
    return made


def routes(operations):
    """Every route of the contract, for a walk over all of them."""
    made = []
    for operation in operations:
        path = operation["path"].replace("/api/s/{site}/", "~/").replace("/v2/api/site/{site}/", "~2/")
        if operation["surface"] in ("legacy-v1", "legacy-v2"):
            entry = [operation["method"], path] + ([operation["cmd"]] if operation.get("cmd") else [])
            if entry not in made:
                made.append(entry)
    return made


def main():
    operations = json.load(open(sys.argv[1]))["operations"]
    rest, settings = legacy(operations)
    parts = {
        "rest": rest,
        "settings": settings,
        "v2": second(operations),
        "official": official(operations),
    }
    dump = lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    lines = []
    for name, part in parts.items():
        rows = ",\n".join(f"{dump(key)}:{dump(value)}" for key, value in sorted(part.items()))
        lines.append(f"{dump(name)}:{{\n{rows}\n}}")
    lines.append('"routes":[\n' + ",\n".join(dump(entry) for entry in routes(operations)) + "\n]")
    lines.append('"patterns":[\n' + ",\n".join(dump(pattern) for pattern in patterns) + "\n]")
    print("{\n" + ",\n".join(lines) + "\n}")


main()
