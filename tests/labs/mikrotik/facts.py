"""Makes facts.json from the contract of the vendor's API and its overlay.

    python3 facts.py CONTRACT OVERLAY > facts.json

Keeps only what the simulated router decides by: menus, commands, names of fields, types, ranges, enumerations, links to
rows of other menus, secrets. The output has one line per menu, so that a later contract shows as a short difference.
"""

import json
import re
import sys

# Parameters that every command with a running output takes.
RUNNING = {
    "append", "as-value", "do", "duration", "file", "freeze-frame-interval", "interval", "once", "proplist",
    "without-paging",
}
# Commands on rows that every list can have; their parameters are the same everywhere.
ON_ROWS = {"disable", "enable", "move", "unset", "reset", "reset-counters", "reset-counters-all"}
# Menus that answer one object although the console prints them as a list.
OBJECTS = {"system/resource", "system/license", "system/device-mode", "system/regulatory", "system/rtrace"}
# The other way round.
LISTS = {"system/health"}
# Menus that were one object up to a release.
OBJECT_UNTIL = {"interface/ovpn-server/server": 16}
# Packages by the names of the boxes, where those of the contract are parts of the base package.
PACKAGES = {"wireless-rep": "wireless", "wireless-qca": "wifi-qcom", "userman-5": "user-manager"}
EXTRA = {"wireless", "wifi-qcom", "user-manager", "rose-storage", "ups", "gps", "calea"}
BY_PATH = {"caps-man": "wireless", "user-manager": "user-manager", "zerotier": "zerotier"}
# Menus of hardware that virtual routers lack.
HARDWARE = ("switch chip", "LTE modem", "RouterBOARD", "PoE", "LCD", "SwOS", "partitions")

# Fields that hold a link to a row of another menu. The first fitting line counts; a star stands for any menu.
LINKS = [
    ("ip/dhcp-server", "address-pool", "ip/pool"),
    ("ip/dhcp-server/matcher", "address-pool", "ip/pool"),
    ("ip/hotspot", "address-pool", "ip/pool"),
    ("ip/hotspot/user/profile", "address-pool", "ip/pool"),
    ("ip/ipsec/mode-config", "address-pool", "ip/pool"),
    ("ip/pool", "next-pool", "ip/pool"),
    ("ipv6/dhcp-server", "address-pool", "ipv6/pool"),
    ("ipv6/dhcp-server", "prefix-pool", "ipv6/pool"),
    ("ipv6/address", "from-pool", "ipv6/pool"),
    ("ip/dhcp-server/lease", "server", "ip/dhcp-server"),
    ("ip/dhcp-server/matcher", "server", "ip/dhcp-server"),
    ("ip/dhcp-server/option/sets", "options", "ip/dhcp-server/option"),
    ("ip/dhcp-server/*", "dhcp-option", "ip/dhcp-server/option"),
    ("ip/dhcp-server*", "dhcp-option-set", "ip/dhcp-server/option/sets"),
    ("ipv6/dhcp-server/binding", "server", "ipv6/dhcp-server"),
    ("ipv6/dhcp-server/option/sets", "options", "ipv6/dhcp-server/option"),
    ("ipv6/dhcp-server*", "dhcp-option", "ipv6/dhcp-server/option"),
    ("ip/hotspot", "profile", "ip/hotspot/profile"),
    ("ip/hotspot/user", "profile", "ip/hotspot/user/profile"),
    ("ip/hotspot/*", "server", "ip/hotspot"),
    ("ip/ipsec/peer", "profile", "ip/ipsec/profile"),
    ("ip/ipsec/policy", "proposal", "ip/ipsec/proposal"),
    ("ip/ipsec/policy", "peer", "ip/ipsec/peer"),
    ("ip/ipsec/policy", "group", "ip/ipsec/policy/group"),
    ("ip/ipsec/identity", "peer", "ip/ipsec/peer"),
    ("ip/ipsec/identity", "mode-config", "ip/ipsec/mode-config"),
    ("ip/ipsec/identity", "policy-template-group", "ip/ipsec/policy/group"),
    ("ip/ipsec/key/psk", "peer", "ip/ipsec/peer"),
    ("ip/ipsec/*", "certificate", "certificate"),
    ("ip/service", "certificate", "certificate"),
    ("interface/*", "certificate", "certificate"),
    ("interface/macsec", "profile", "interface/macsec/profile"),
    ("interface/wireless*", "security-profile", "interface/wireless/security-profiles"),
    ("interface/wireguard/peers", "interface", "interface/wireguard"),
    ("interface/vxlan/vteps", "interface", "interface/vxlan"),
    ("interface/wifi*", "configuration", "interface/wifi/configuration"),
    ("interface/wifi*", "master-configuration", "interface/wifi/configuration"),
    ("interface/wifi*", "slave-configurations", "interface/wifi/configuration"),
    ("interface/wifi*", "security", "interface/wifi/security"),
    ("interface/wifi*", "channel", "interface/wifi/channel"),
    ("interface/wifi*", "datapath", "interface/wifi/datapath"),
    ("interface/wifi*", "aaa", "interface/wifi/aaa"),
    ("interface/wifi*", "steering", "interface/wifi/steering"),
    ("interface/wifi*", "interworking", "interface/wifi/interworking"),
    ("caps-man/provisioning", "master-configuration", "caps-man/configuration"),
    ("caps-man/provisioning", "slave-configurations", "caps-man/configuration"),
    ("caps-man/*", "configuration", "caps-man/configuration"),
    ("caps-man/*", "security", "caps-man/security"),
    ("caps-man/*", "channel", "caps-man/channel"),
    ("caps-man/*", "datapath", "caps-man/datapath"),
    ("caps-man/*", "rates", "caps-man/rates"),
    ("interface/lte", "apn-profiles", "interface/lte/apn"),
    ("interface/list/member", "list", "interface/list"),
    ("interface/list", "include", "interface/list"),
    ("interface/list", "exclude", "interface/list"),
    ("user", "group", "user/group"),
    ("user/ssh-keys", "user", "user"),
    ("user/aaa", "default-group", "user/group"),
    ("queue/simple", "parent", "queue/simple"),
    ("queue/tree", "queue", "queue/type"),
    ("queue/interface", "queue", "queue/type"),
    ("ppp/secret", "profile", "ppp/profile"),
    ("interface/*", "profile", "ppp/profile"),
    ("interface/*", "default-profile", "ppp/profile"),
    ("system/logging", "action", "system/logging/action"),
    ("system/ntp/client/servers", "auth-key", "system/ntp/key"),
    ("routing/ospf/area", "instance", "routing/ospf/instance"),
    ("routing/ospf/*", "area", "routing/ospf/area"),
    ("routing/rip/*", "instance", "routing/rip/instance"),
    ("routing/isis/interface-template", "instance", "routing/isis/instance"),
    ("routing/pimsm/*", "instance", "routing/pimsm/instance"),
    ("routing/bgp/*", "instance", "routing/bgp/instance"),
    ("routing/bgp/connection", "templates", "routing/bgp/template"),
    ("routing/rule", "table", "routing/table"),
    ("user-manager/user", "group", "user-manager/user/group"),
    ("user-manager/profile-limitation", "profile", "user-manager/profile"),
    ("user-manager/profile-limitation", "limitation", "user-manager/limitation"),
    ("user-manager/user-profile", "profile", "user-manager/profile"),
    ("user-manager/user-profile", "user", "user-manager/user"),
    ("ip/kid-control/device", "user", "ip/kid-control"),
    ("*", "routing-table", "routing/table"),
    ("*", "vrf", "ip/vrf"),
]
# Fields that name interfaces although the contract calls them alternatives.
INTERFACES = {
    ("interface/bridge/port", "interface"),
    ("interface/bridge/vlan", "mvrp-forbidden"),
    ("interface/bridge/vlan", "tagged"),
    ("interface/bridge/vlan", "untagged"),
    ("ip/hotspot", "interface"),
    ("ip/traffic-flow", "interfaces"),
    ("ip/vrf", "interfaces"),
}
INTERFACES |= {
    ("routing/" + menu, "interfaces")
    for menu in (
        "bfd/configuration", "gmp", "isis/interface-template", "ospf/interface-template",
        "pimsm/igmp-interface-template", "pimsm/interface-template", "rip/interface-template",
    )
}
# Fields that only some rows have and whose absence is not shown as the default.
SHOWN_IF_SET = {"ip/firewall/": {"disabled", "log", "log-prefix"}, "ipv6/firewall/": {"disabled", "log", "log-prefix"},
                "tool/netwatch": {"disabled"}, "ip/route": {"disabled"}, "ipv6/route": {"disabled"}}


def fits(pattern, menu):
    if pattern.endswith("*"):
        return menu.startswith(pattern[:-1])
    return pattern == menu


def link_of(menu, f):
    name = f["name"]
    if f["type"] == "interface-ref" or f.get("item_type") == "interface-ref" or (menu, name) in INTERFACES:
        found = "interface"
        for pattern, field, target in LINKS:
            if field == name and fits(pattern, menu):
                found = target
                break
        return found
    if name == "interface-list" or name.endswith("-interface-list") or re.fullmatch(r"(in|out)-bridge(-port)?-list", name):
        return "interface/list"
    for pattern, field, target in LINKS:
        if field == name and fits(pattern, menu):
            return target
    return None


NUM = r"num( \{ \})?( \[[^\]]*\])?"


def kind_of(f):
    """The check that a value gets: what the manual says of the type is believed before what the console offers."""
    t, mt = f["type"], f.get("manual_type") or ""
    mt = re.sub(r"^super \{ (! , )?(.*) \}$", r"\2", mt) if not re.search(r"\} \{|, ,", mt) else mt
    default = f.get("default")
    if mt == "switch":
        return "flag"
    if re.search(r"\bubit \(\w", mt) and not mt.startswith("alt") and not re.search(r"(time|num) \[|\[ :", mt):
        return "words"
    if t == "boolean":
        return "bool" if default in (None, True, False) and not f.get("known_values") else "text"
    if re.match(r"multi \{ array-id, array-id, super \{ ! , enum", mt) or "super { !, , multi" in mt:
        return "marks"
    if t == "integer":
        return "int" if not mt or re.fullmatch(NUM, mt) else "text"
    if t == "duration":
        return "duration" if not mt or re.match(r"time|alt \{ enum \([^)]*\) \{[^}]*\} , time|enum \(", mt) else "text"
    if t == "mac-address":
        return "mac" if not mt or mt.startswith("macAddr") else "text"
    if mt.startswith("multi { array-id, enum (") and f.get("enum"):
        return "words"
    if t == "list":
        return "list"
    if mt in ("ipAddr", "ipAddr { }"):
        return "ip4"
    if mt in ("ip6Addr", "ip6Addr { }"):
        return "ip6"
    if mt == "alt { ipAddr , ip6Addr }" or mt == "alt { ip6Addr , ipAddr }":
        return "ip"
    if re.match(r"ipAddr , /num", mt) or mt == "ipPrefix":
        return "prefix4"
    if mt.startswith("ip6Prefix"):
        return "prefix6"
    if mt.startswith("ipRange"):
        return "range4"
    if mt.startswith("enum (") and f.get("enum") and not mt.startswith("enum ()"):
        return "enum"
    return "text"


def field(menu, f, secrets, since, until):
    out = {"name": f["name"], "type": kind_of(f)}
    link = link_of(menu, f)
    if link:
        out["link"] = link
        out["type"] = "link"
    if f["required"]:
        out["required"] = True
    if out["type"] in ("enum", "words", "marks") or (link and f.get("enum")):
        out["options"] = [o for o in f["enum"] or f.get("known_values") or [] if o]
    words = list(f.get("keywords") or [])
    if out["type"] in ("int", "duration", "link") and f.get("known_values") and len(f["known_values"]) < 8:
        words += [str(w) for w in f["known_values"] if w and str(w) not in words]
    default = f.get("default")
    if default is not None:
        text = {True: "true", False: "false"}.get(default, str(default)) if isinstance(default, bool) else str(default)
        if out["type"] in ("enum", "words") and text in ("true", "false"):
            text = {"true": "yes", "false": "no"}[text]
        out["default"] = text
        if out["type"] == "int" and not re.fullmatch(r"-?\d+", text) and not text.startswith("0x") and text:
            if re.fullmatch(r"[\d.]+\w+", text):
                out["type"] = "text"
            else:
                words.append(text)
        if out["type"] == "int" and text.startswith("0x"):
            out["hex"] = True
    if words:
        out["words"] = sorted(set(words))
    if f.get("minimum") is not None and out["type"] == "int":
        out["min"], out["max"] = f["minimum"], f["maximum"]
    if f.get("range") and out["type"] == "duration":
        out["range"] = f["range"]
    if f.get("item_type") and out["type"] == "list":
        out["item"] = f["item_type"]
    if f.get("negatable"):
        out["negatable"] = True
    if f.get("create_only"):
        out["create"] = True
    shown_if_set = any(menu.startswith(start) and f["name"] in names for start, names in SHOWN_IF_SET.items())
    if f.get("unset") or shown_if_set:
        out["unset"] = True
    if f["name"] in secrets or f.get("write_only"):
        out["secret"] = True
    if f["name"] in since:
        out["since"] = since[f["name"]]
    if f["name"] in until:
        out["until"] = until[f["name"]]
    return out


def minor(version):
    return int(version.split(".")[1])


def by_field(table):
    return {name: minor(version) for version, names in (table or {}).items() for name in names}


def overlay_of(overlay):
    """What the overlay says of a menu: facts of its item, and when its commands came and went."""
    menus, commands = {}, {}
    for item in overlay["items"]:
        for verb, routes in item["routes"].items():
            for route in routes if isinstance(routes, list) else [routes]:
                path = route.split("/rest/")[1].removesuffix("/{id}")
                if item["shape"] == "action":
                    commands[path] = item
                elif verb in ("list", "get", "update", "create"):
                    menus.setdefault(path.removesuffix("/set"), item)
    return menus, commands


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    overlay = json.load(open(sys.argv[2], encoding="utf-8"))
    items, actions = overlay_of(overlay)
    menus = {}
    for o in contract["operations"]:
        menu, name = o["menu"], o["operation"]
        item = items.get(menu, {})
        out = menus.setdefault(menu, {"kind": "none", "area": o["area"]})
        package = PACKAGES.get(o.get("package"), o.get("package"))
        package = package if package in EXTRA else BY_PATH.get(menu.split("/")[0])
        if package:
            out["package"] = package
        if any(word in (item.get("needs") or "") for word in HARDWARE):
            out["hardware"] = True
        if item.get("since"):
            out["since"] = minor(item["since"])
        elif o.get("not_in_7_16") and not package and menu != "":
            out["since"] = 17
        if item.get("until"):
            out["until"] = minor(item["until"])
        if menu in OBJECT_UNTIL:
            out["object_until"] = OBJECT_UNTIL[menu]
        is_row = "{id}" in o["path"]
        if (name == "list" and menu not in OBJECTS) or menu in LISTS:
            out["kind"] = "list"
        elif name in ("list", "read") and not is_row and out["kind"] == "none":
            out["kind"] = "object"
        if name in ("list", "read") and o.get("response_fields"):
            out["shown"] = sorted(set(o["response_fields"]) | set(out.get("shown", [])))
        if name in ("create", "update", "delete"):
            verb = {"create": "add", "update": "set", "delete": "remove"}[name]
            out.setdefault("can", []).append(verb)
        if name in ("create", "update"):
            since, until = by_field(item.get("fields_since")), by_field(item.get("fields_until"))
            secrets = set(item.get("secrets") or [])
            fields = {f["name"]: f for f in out.get("fields", [])}
            for f in o["fields"]:
                if f["name"] == "numbers":
                    continue
                made = field(menu, f, secrets, since, until)
                if made["name"] not in fields:
                    fields[made["name"]] = made
                elif made.get("required") and name == "create":
                    fields[made["name"]]["required"] = True
            for beyond in list(item.get("fields_beyond") or []) + [n for n in until if n not in fields]:
                if beyond in fields or "/" in beyond:
                    continue
                made = field(menu, {"name": beyond, "type": "string", "required": False, "unset": "yes"}, secrets, since, until)
                fields[beyond] = made
            out["fields"] = [fields[n] for n in sorted(fields)]
        if name.startswith("command:"):
            command = name.removeprefix("command:")
            if command in ON_ROWS:
                out.setdefault("can", []).append(command)
            else:
                made = {"takes": " ".join(f["name"] for f in o["fields"] if f["name"] not in RUNNING)}
                if {f["name"] for f in o["fields"]} >= {"duration", "interval"}:
                    made["runs"] = True
                action = actions.get(f"{menu}/{command}".lstrip("/"), {})
                for key in ("since", "until"):
                    if action.get(key):
                        made[key] = minor(action[key])
                out.setdefault("commands", {})[command] = made
        if o.get("ordering") and "move" not in out.get("can", []):
            out.setdefault("can", []).append("move")
        if item.get("key_is") == "unique at the vendor" and item.get("natural_key"):
            out["unique"] = item["natural_key"]

    for out in menus.values():
        if "can" in out:
            out["can"] = " ".join(sorted(set(out["can"])))
        if "shown" in out:
            named = {f["name"] for f in out.get("fields", [])}
            out["shown"] = " ".join(n for n in out["shown"] if n not in named)
    rows = (f"{json.dumps(key)}:{json.dumps(menus[key], separators=(',', ':'))}" for key in sorted(menus))
    print("{\n" + ",\n".join(rows) + "\n}")


main()
