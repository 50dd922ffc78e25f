"""Makes facts.json from a contract of the vendor's API.

    python3 facts.py CONTRACT > facts.json

Keeps bare facts: routes, names, types, ranges, enumerations. The output has one line per field and one per route, so
that a later contract shows as a short difference. Equal fields stand once; routes refer to them by index.
"""

import json
import re
import sys

# Formats that are sets of names: the order of their members says nothing.
SETS = {
    "pve-storage-content-list",
    "pve-node-list",
    "pve-groupid-list",
    "pve-priv-list",
    "pve-storage-id-list",
}


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def pattern(text):
    """A pattern in the words of JSON Schema; none where it needs more."""
    body = text.replace("(?^i:", "(?:").replace("(?^:", "(?:").replace("(:?", "(?:")
    if "(?^i:" in text or "(?i" in text or re.search(r"\(\?[=!<]|\\[1-9]", body) or len(body) > 200:
        return None
    return body if body.startswith("^") and body.endswith("$") else f"^(?:{body})$"


def field(source):
    out = {"name": source["name"].removesuffix("[n]"), "type": source.get("type") or "string"}
    if source.get("required"):
        out["required"] = True
    if source.get("enum"):
        out["options"] = [str(word) for word in source["enum"]]
    for name, short in (("minimum", "min"), ("maximum", "max")):
        if source.get(name) is not None:
            found = number(source[name])
            if found is not None:
                out[short] = found
    for name, short in (("min_length", "least"), ("max_length", "most")):
        if source.get(name) is not None:
            out[short] = source[name]
    if source.get("pattern"):
        found = pattern(source["pattern"])
        if found:
            out["pattern"] = found
    if source.get("format") in SETS:
        out["set"] = True
    if source.get("format") == "pve-tag-list":
        out["tags"] = True
    for name, short in (("indexed", "indexed"), ("default_key", "first"), ("requires", "requires"), ("alias", "alias")):
        if source.get(name):
            out[short] = source[name]
    if source.get("property_string"):
        out["parts"] = [field(part) for part in source["property_string"]]
    return out


class Table:
    """A list without duplicates."""

    def __init__(self):
        self.rows, self.places = [], {}

    def place(self, row):
        text = json.dumps(row, sort_keys=True)
        if text not in self.places:
            self.places[text] = len(self.rows)
            self.rows.append(row)
        return self.places[text]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        contract = json.load(file)
    fields, routes = Table(), {}
    for operation in contract["operations"]:
        path = operation["path"].removeprefix(contract["base_path"])
        out = {"area": operation["area"], "fields": [fields.place(field(one)) for one in operation["fields"]]}
        if operation["async_task"]:
            out["task"] = True
        if operation["token_allowed"] is False:
            out["ticket"] = True
        answer = operation["response"].get("type")
        if answer:
            out["answer"] = answer
        routes[f"{operation['method']} {path}"] = out
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in fields.rows)
    lines = (f"{json.dumps(key)}:{json.dumps(routes[key], separators=(',', ':'))}" for key in sorted(routes))
    print('{"fields":[\n' + rows + '\n],\n"routes":{\n' + ",\n".join(lines) + "\n}}")


main()
