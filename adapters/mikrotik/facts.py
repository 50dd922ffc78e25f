"""Makes facts.json from a contract of the vendor's API.

    python3 facts.py CONTRACT > facts.json

Keeps bare facts: menus, commands, names, types, ranges, enumerations. The output has one line per menu, so that a later
contract shows as a short difference.
"""

import json
import re
import sys

BASE = "/rest/"
# Commands that every list has; nothing is said of their parameters.
BARE = {"enable", "disable", "move", "unset", "reset"}
# Parameters of the console that are no fields.
NOT_FIELDS = {"numbers", "number", "as-value"}
# Fewer choices than these are single words beside which other values are accepted.
CLOSED_LEAST = 3
# Pairs of choices that are all there are.
PAIRS = [{"yes", "no"}, {"enabled", "disabled"}, {"on", "off"}, {"tcp", "udp"}, {"ip", "ipv6"}, {"rx", "tx"}]
NUMBERS = re.compile(r"(super \{ )?num( \{ \}| \[[^\]]*\])?( \})?")
TIMES = re.compile(r"time( \{ \}| \[[^\]]*\])?|alt \{ enum .*, time( \[[^\]]*\])? (, )?\}")
NEGATED = re.compile(r"super \{ !,? , (.*) \}")


def scalar(kind, manual):
    """The type of one value, as this project names it."""
    if kind == "boolean":
        return "flag" if manual in (None, "bool", "bool { }", "super { bool }") else "text"
    if kind == "integer":
        return "number" if manual is None or NUMBERS.fullmatch(manual) else "text"
    if kind == "duration":
        return "duration" if manual is None or TIMES.fullmatch(manual) else "text"
    return {"mac-address": "mac"}.get(kind, "text")


def choices(f, manual):
    """Words that a field takes; none where it takes others, too."""
    words = [word for word in f.get("enum") or [] if word]
    if len(words) >= CLOSED_LEAST or set(words) in PAIRS:
        return words
    return []


def field(f):
    manual = f.get("manual_type")
    negated = NEGATED.fullmatch(manual or "")
    inner = negated.group(1) if negated else manual
    out = {"name": f["name"]}
    words = choices(f, inner)
    if f["type"] == "list" or (inner or "").startswith("object {"):
        # Words of a set come back in the order of the device.
        is_set = bool(words)
        # Each word may be negated by itself there.
        if is_set and "super { !" in (inner or ""):
            words = []
        out["type"] = "set" if is_set else "list"
    elif manual == "switch":
        out["type"] = "mark"
    else:
        out["type"] = scalar(f["type"], inner)
        if out["type"] not in ("text", "mac"):
            words = []
    if words:
        out["options"] = words
    if negated:
        out["negated"] = True
    if f.get("required"):
        out["required"] = True
    if f.get("unset"):
        out["unset"] = True
    if f.get("create_only"):
        out["create-only"] = True
    if f.get("write_only"):
        out["write-only"] = True
    if f["type"] == "integer" and out["type"] == "number":
        for name, bound in (("min", "minimum"), ("max", "maximum")):
            if f.get(bound) is not None:
                out[name] = f[bound]
        if f.get("enum") or f.get("keywords"):
            out["words"] = sorted(set(f.get("enum") or []) | set(f.get("keywords") or []))
    if out["type"] == "duration" and f.get("keywords"):
        out["words"] = f["keywords"]
    default = f.get("default")
    is_plain = isinstance(default, (str, int)) and not isinstance(default, bool) and str(default)
    if out["type"] == "flag" and isinstance(default, bool) or is_plain and out["type"] in ("text", "number"):
        out["default"] = default
    return out


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    menus = {}
    for op in contract["operations"]:
        menu = menus.setdefault(op["menu"], {"area": op["area"]})
        method, kind = op["method"], op["operation"]
        rest = op["path"].removeprefix(BASE).removeprefix(op["menu"]).strip("/")
        fields = {f["name"]: field(f) for f in op["fields"]}
        if method == "GET":
            menu["get" if rest else "list" if kind == "list" else "read"] = True
            continue
        if method in ("PUT", "PATCH", "DELETE"):
            word = {"PUT": "create", "PATCH": "update", "DELETE": "delete"}[method]
            menu[word] = True
        elif kind == "update":
            menu["set"] = True
        else:
            command = rest
            own = [] if command in BARE else list(fields.values())
            menu.setdefault("commands", {})[command] = own
            continue
        known = menu.setdefault("fields", {})
        for name, new in fields.items():
            if name in NOT_FIELDS:
                continue
            old = known.setdefault(name, new)
            # A create may need what an update leaves as it is.
            for word in ("required", "create-only", "unset"):
                if new.get(word):
                    old[word] = True
    for menu in menus.values():
        if "fields" in menu:
            menu["fields"] = list(menu["fields"].values())
    rows = (f"{json.dumps(name)}:{json.dumps(menus[name], separators=(',', ':'))}" for name in sorted(menus))
    print('{"menus":{\n' + ",\n".join(rows) + "\n}}")


main()
