"""Makes facts.json from the contract of the vendor's API and from facts that the contract lacks.

    python3 facts.py CONTRACT lacking.json > facts.json

Keeps only what the simulated firewall decides by: routes, names, types, ranges, enumerations, conditions, references,
order. `lacking.json` has the checks of single fields, what a reference stores, and which release brought or dropped a
field. The output has one line per model and one per route, so that a later contract shows as a short difference.
"""

import json
import sys

# Flags of a field that are kept only where they are set.
FLAGS = (
    "required",
    "unique",
    "allow_empty",
    "allow_null",
    "read_only",
    "write_only",
    "sensitive",
    "representation_only",
)
BOUNDS = ("min", "max", "min_items", "max_items", "min_length", "max_length")
# What the vendor's classes take for text that the contract calls by other names.
TEXTS = {"string(auto)": "string"}
# Integers that are references to a field with numbers.
NUMBERS = {"ikeid", "vpnid"}


def field(given, lacking):
    out = {"name": given["name"]}
    kind = TEXTS.get(given["type"], given["type"])
    if kind.startswith("array<"):
        kind, out["many"] = kind.removeprefix("array<").removesuffix(">"), True
    refers = given.get("refers_to")
    if refers:
        models = refers["model"] if isinstance(refers["model"], list) else [refers["model"]]
        out["ref"] = {"models": models, "field": refers["field"]}
        if refers.get("keywords"):
            out["ref"]["words"] = refers["keywords"]
        for name in ("stored", "of"):
            if name in lacking:
                out["ref"][name] = lacking[name]
        kind = "integer" if refers["field"] in NUMBERS else "string"
    out["type"] = kind
    out |= {name: True for name in FLAGS if given.get(name)}
    out |= {name: given[name] for name in BOUNDS if given.get(name) is not None}
    # A bound of no items means no bound.
    if out.get("max_items") == 0:
        del out["max_items"]
    if given.get("editable") is False:
        out["fixed"] = True
    # Names of devices are known to the firewall only.
    if given.get("enum") and not (given.get("enum_source") or "").startswith("runtime list (get_interface_ports"):
        out["options"] = given["enum"]
    if given.get("default") is not None:
        out["default"] = given["default"]
    if given.get("only_when"):
        out["when"] = given["only_when"]
    takes = given.get("accepts") or {}
    allowed = [name.removeprefix("allow_") for name, value in takes.items() if value is True]
    denied = [name.removeprefix("allow_") for name, value in takes.items() if value is False]
    if allowed:
        out["takes"] = allowed
    if denied:
        out["denies"] = denied
    if takes.get("allow_custom"):
        out["words"] = takes["allow_custom"]
    if given.get("nested_model"):
        out["nested"] = given["nested_model"]
    # Conditions and words that the contract could not evaluate.
    kept = ("when", "words", "checks", "now", "uid", "referenced_by", "from", "until")
    out |= {name: lacking[name] for name in kept if name in lacking}
    # Entries without a text between them are stored one by one.
    if lacking.get("split", ",") is False:
        out["whole"] = True
    elif "split" in lacking:
        out["split"] = lacking["split"]
    return out


def model(given, lacking):
    out = {"many": True} if given["many"] else {}
    if given["id_type"] == "string":
        out["named"] = True
    if given["config_path"]:
        out["stored"] = True
    for name, key in (("parent_model", "parent"), ("subsystem", "subsystem"), ("packages", "packages")):
        if given[name]:
            out[key] = given[name]
    # The contract tells one package in the words of a condition.
    if any(package.startswith("conditional") for package in out.get("packages", [])):
        out["packages"] = ["pfSense-pkg-Cron"]
    if given["apply_mode"] == "immediate":
        out["immediate"] = True
    if given["apply_mode"] == "deferred-inline-only":
        out["inline"] = True
    if given["apply_call"]:
        out["apply"] = given["apply_call"].removeprefix("POST /api/v2")
    names = {"unique_together": "unique", "min_objects": "min", "sorted_by": "sort", "protected_query": "keeps"}
    out |= {key: given[name] for name, key in names.items() if given[name]}
    out |= {name: lacking[name] for name in ("replace", "max_objects") if name in lacking}
    more = lacking.get("fields", {})
    fields = given["fields"] + lacking.get("gone", [])
    # Conditions see only the fields before their own, so that the order of the vendor's code counts.
    order = {name: at for at, name in enumerate(lacking.get("order", []))}
    fields.sort(key=lambda f: order.get(f["name"], len(order)))
    out["fields"] = [field(f, more.get(f["name"], {}) | {k: f[k] for k in ("from", "until") if k in f}) for f in fields]
    return out


def routes_of(contract):
    out = {}
    for route in contract["routes"]:
        path = route["path"].removeprefix("/api/v2")
        entry = out.setdefault(path, {"model": route["model"], "methods": []})
        entry["methods"].append(route["method"])
        if route["operation"] in ("list", "delete_many", "replace_all"):
            entry["many"] = True
        if route["since"][:6] not in ("v2.3.0", "v2.4.0", "v2.5.0", "v2.6.0", "v2.7.0"):
            entry["from"] = route["since"].removeprefix("v")
        for name in ("auth_methods", "ignore_read_only", "ignore_enabled", "ignore_interfaces", "limit"):
            if name in route:
                entry[name] = route[name]
        if route.get("encode_content_handlers"):
            entry["answers"] = route["encode_content_handlers"]
        if route["privileges"] == ["page-all"]:
            entry["page_all"] = True
    return out


def lines(table):
    rows = (f"{json.dumps(key)}:{json.dumps(table[key], separators=(',', ':'))}" for key in sorted(table))
    return "{\n" + ",\n".join(rows) + "\n}"


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    lacking = json.load(open(sys.argv[2], encoding="utf-8"))
    models = {name: model(given, lacking.get(name, {})) for name, given in contract["models"].items()}
    print('{"models":' + lines(models) + ',\n"routes":' + lines(routes_of(contract)) + "}")


main()
