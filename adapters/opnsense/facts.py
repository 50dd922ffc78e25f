"""Makes facts.json from a contract of the vendor's API.

    python3 facts.py CONTRACT lacking.json > facts.json

Keeps bare facts: routes, names, types, ranges, enumerations. `lacking.json` has what the contract lacks: fields of older
controllers, and which choices are answered in their order. The output has one line per list of fields and one per controller, so that a later
contract shows as a short difference.
"""

import json
import re
import sys

# Settings of controllers that name no model, with the model whose fields they have.
NAMELESS = {
    "diagnostics/netflow": ("Diagnostics/Netflow", "netflow"),
    "freeradius/eap": ("Freeradius/Eap", "eap"),
    "freeradius/general": ("Freeradius/General", "general"),
}
# Items that have the fields of their model's settings.
AS_SETTINGS = {"auth/priv/set_item": "Auth/Priv:"}


def path_of(route):
    """Controller, command, names of the path values, how many of them are needed."""
    parts = route["path"].removeprefix("/api/").replace("[/", "/").replace("]", "").split("/")
    needed = sum(1 for param in route.get("path_params") or [] if param["required"])
    return "/".join(parts[:2]), parts[2], [part.strip("{}") for part in parts[3:]], needed


def pattern(text):
    """A pattern without delimiters; none where it needs what JSON Schema does not have."""
    body, flags = text[1:].rsplit("/", 1)
    body = body.replace("\\A", "^").replace("\\z", "$").replace("\\/", "/").replace("\\#", "#").replace("\\=", "=")
    body = re.sub(r"\{1,\d{4,}\}", "+", body)
    body = re.sub(r"\{0,\d{4,}\}", "*", body)
    if "i" in flags or "(?" in body.replace("(?:", "(") or len(body) > 160 or "\\x" in body or "\\u" in body:
        return None
    if re.search(r"\\[1-9]|\[\^?\]|\[\[|&&|\{[^\d]", body):
        return None
    return body


def field(f):
    out = {"name": f["name"], "type": f["type"]}
    if f["required"]:
        out["required"] = True
    if f["type"] != "bool01" and f.get("enum"):
        # Names of groups of choices stand where the choices are known only on the device.
        options = [option for option in f["enum"] if not option.startswith("optgroup")]
        if options:
            out["options"] = options
    if f.get("default") is not None:
        out["default"] = str(f["default"])
    for name in ("min", "max"):
        if f.get(name) is not None:
            out[name] = str(f[name])
    if f.get("pattern"):
        found = pattern(f["pattern"])
        if found:
            out["pattern"] = found
    for name in ("multiple", "volatile"):
        if f.get(name):
            out[name] = True
    if f.get("read_as"):
        out["map"] = True
    if f.get("relates_to"):
        out["refers"] = [name.removeprefix("OPNsense.").replace(".", "/", 1) for name in f["relates_to"]]
    if f.get("field_class") in ("UpdateOnlyTextField",):
        out["type"] = "secret-write-only"
    if f.get("field_class") == "AutoNumberField":
        out["type"] = "auto-number"
    return out


def lacking_item(lacking, path, command):
    """Root key and list of fields of an older controller's item."""
    items = lacking["items"].get(path, {})
    noun = next((noun for noun in items if command.endswith("_" + noun)), None)
    return items[noun] if noun else (None, None)


def lacking_fields(lacking):
    out = {}
    for key, fields in lacking["fields"].items():
        out[key] = [dict(f) for f in fields]
        for f in out[key]:
            found = pattern(f.pop("pattern")) if "pattern" in f else None
            if found:
                f["pattern"] = found
    return out


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    lacking = json.load(open(sys.argv[2], encoding="utf-8"))
    fields, controllers = lacking_fields(lacking), {}
    for route in contract["routes"]:
        path, command, params, needed = path_of(route)
        if path in NAMELESS and command in ("get", "set", "getconfig", "setconfig"):
            route["model"], root = NAMELESS[path]
            route["body_root_key" if command.startswith("set") else "response_root_key"] = root
        out = {"op": route["operation"]}
        if "GET" in route["method"]:
            out["get"] = True
        # Pages and words to search for are only taken from a body.
        if (route.get("note") or "").startswith("paging"):
            out["live"] = True
        if params:
            out["params"] = params
        if needed:
            out["needed"] = needed
        old_root, old_fields = lacking_item(lacking, path, command)
        root = route.get("body_root_key") or route.get("response_root_key") or old_root
        if root:
            out["root"] = root
        # One model lists a field twice.
        own = list({f["name"]: field(f) for f in route.get("fields") or []}.values())
        if f"{path}/{command}" in AS_SETTINGS:
            out["fields"] = AS_SETTINGS[f"{path}/{command}"]
        elif own and route["operation"] in ("create", "update", "settings-write"):
            key = f"{route.get('model') or path}:{route.get('model_path') or ''}"
            if not route.get("model_path") and route["operation"] != "settings-write":
                key = f"{path}:{command.split('_', 1)[-1]}"
            if len(own) > len(fields.get(key, [])):
                fields[key] = own
            out["fields"] = key
        elif route["operation"] in ("create", "update") and old_fields:
            out["fields"] = old_fields
        elif route["operation"] == "settings-write" and f"{route.get('model')}:" in lacking["fields"]:
            out["fields"] = f"{route['model']}:"
        for name in ("apply_call", "plugin"):
            if route.get(name):
                out[name.split("_")[0]] = route[name].removeprefix("POST ").split(" ")[0]
        if route.get("danger"):
            out["danger"] = True
        controller = controllers.setdefault(path, {"area": route["area"], "commands": {}})
        controller["commands"][command] = out

    def lines(table):
        rows = (f"{json.dumps(key)}:{json.dumps(table[key], separators=(',', ':'))}" for key in sorted(table))
        return "{\n" + ",\n".join(rows) + "\n}"

    for key, names in lacking["sorted"].items():
        for f in fields[key]:
            if f["name"] in names:
                f["sorted"] = True

    print('{"fields":' + lines(fields) + ',\n"controllers":' + lines(controllers) + "}")


main()
