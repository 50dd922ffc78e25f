"""Makes facts.json from a contract of the vendor's API.

    python3 facts.py CONTRACT lacking.json > facts.json

Keeps bare facts: routes, names, types, ranges, enumerations. `lacking.json` has what the contract lacks: which fields are
secrets although it does not say so, and conditions that it leaves open. The output has one line per model and one per path, so that a later contract shows as
a short difference.
"""

import json
import sys

BASE = "/api/v2"


def type_of(f, models):
    """The type of a field; that of what it refers to where it names objects by numbers."""
    refers = f.get("refers_to")
    if not refers or not isinstance(refers["model"], str) or refers.get("keywords"):
        return f["type"]
    known = {other["name"]: other["type"] for other in models[refers["model"]]["fields"]}
    is_number = known.get(refers["field"]) == "integer"
    return f["type"].replace("reference", "integer") if is_number else f["type"]


def field(f, secrets, conditions, models):
    out = {"name": f["name"], "type": type_of(f, models)}
    if f["required"]:
        out["required"] = True
    # What is only known at run time differs from box to box.
    if f.get("enum") and not f.get("enum_source"):
        out["options"] = f["enum"]
    for name in ("min", "max", "min_items", "max_items", "min_length", "max_length"):
        # A bound of no items means no bound.
        if f.get(name) is not None and (f[name] or not name.startswith("max_")):
            out[name] = f[name]
    for name, short in (("allow_null", "null"), ("allow_empty", "empty"), ("read_only", "shown")):
        if f.get(name):
            out[short] = True
    if f.get("default") is not None:
        out["default"] = f["default"]
    when = conditions.get(f["name"], f.get("only_when"))
    if when:
        out["when"] = when
    if f.get("sensitive") or f["name"] in secrets:
        out["secret"] = True
    elif f.get("write_only"):
        out["unread"] = True
    if f.get("editable") is False:
        out["fixed"] = True
    if f.get("nested_model"):
        out["nested"] = f["nested_model"]
    if f.get("refers_to"):
        models = f["refers_to"]["model"]
        out["refers"] = models if isinstance(models, list) else [models]
    return out


def model(name, m, lacking, models):
    secrets, conditions = lacking["secrets"].get(name, []), lacking["conditions"].get(name, {})
    out = {"fields": [field(f, secrets, conditions, models) for f in m["fields"]]}
    if m["many"]:
        out["id"] = m["id_type"]
    for source, short in (("parent_model", "parent"), ("packages", "packages"), ("unique_together", "unique")):
        if m.get(source):
            out[short] = m[source]
    return out


def route(r):
    out = {"op": r["operation"], "model": r["model"]}
    apply = r.get("apply_call") or ""
    if apply.startswith("POST "):
        out["apply"] = apply.removeprefix("POST ")
    elif "inline" in apply:
        out["apply"] = "inline"
    if not r["since"].endswith("earlier"):
        out["since"] = r["since"].removeprefix("v")
    if r.get("danger"):
        out["danger"] = True
    return out


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    lacking = json.load(open(sys.argv[2], encoding="utf-8"))
    models = {name: model(name, m, lacking, contract["models"]) for name, m in contract["models"].items()}
    paths = {}
    for r in contract["routes"]:
        path = paths.setdefault(r["path"], {"area": r["area"], "methods": {}})
        # Two classes of the package stand behind one path: the list answers.
        path["methods"][r["method"]] = route(r)

    def lines(table):
        rows = (f"{json.dumps(key)}:{json.dumps(table[key], separators=(',', ':'))}" for key in sorted(table))
        return "{\n" + ",\n".join(rows) + "\n}"

    print('{"models":' + lines(models) + ',\n"paths":' + lines(paths) + "}")


main()
