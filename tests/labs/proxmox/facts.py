"""Makes facts.json, the compact form of the API schema that the simulated cluster validates requests with.

Usage: python3 facts.py SCHEMA.json > facts.json

SCHEMA.json holds `operations`, one for each method of each path: `method`, `path`, `fields` (name, type, required,
enum, minimum, maximum, min_length, max_length, pattern, format, indexed, property_string, requires), `async_task`,
`token_allowed`, `permission_check` and `response` (type, child_key, fields). The published schema of the product's
API viewer has the same contents as a tree.

Only names, types, ranges and enumerations are kept. Equal fields and equal permission rules are written once, and
routes refer to them by index. The keys are explained where src/facts.rs reads them.
"""

import json
import sys

TYPES = {"string": "s", "integer": "i", "number": "n", "boolean": "b", "array": "a", "object": "o", None: "s"}
LIMITS = {
    "minimum": "lo",
    "maximum": "hi",
    "min_length": "ml",
    "max_length": "xl",
    "pattern": "p",
    "requires": "q",
    "alias": "al",
}


def number_of(text):
    number = float(text)
    return int(number) if number.is_integer() else number


def field_of(source):
    out = {"n": source["name"].removesuffix("[n]"), "t": TYPES[source["type"]]}
    if source.get("required"):
        out["r"] = 1
    if source.get("enum"):
        out["e"] = [str(word) for word in source["enum"]]
    for name, short in LIMITS.items():
        if source.get(name) is not None:
            out[short] = number_of(source[name]) if name in ("minimum", "maximum") else source[name]
    if "p" in out:
        # Perl prints its flags as (?^i:...), which other engines write as (?i:...).
        out["p"] = out["p"].replace("(?^i:", "(?i:").replace("(?^:", "(?:")
    if source.get("format") not in (None, "property-string"):
        out["f"] = source["format"]
    if source.get("indexed"):
        out["x"] = 1
    if source.get("default_key"):
        out["d"] = 1
    if source.get("property_string"):
        out["ps"] = [field_of(sub) for sub in source["property_string"]]
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
        operations = json.load(file)["operations"]
    fields, rules, routes = Table(), Table(), []
    for operation in operations:
        response = operation.get("response") or {}
        route = {
            "m": operation["method"],
            "p": operation["path"].removeprefix("/api2/json"),
            "f": [fields.place(field_of(field)) for field in operation["fields"]],
            "o": TYPES.get(response.get("type"), "z"),
        }
        if operation.get("async_task"):
            route["a"] = 1
        if operation.get("token_allowed") is False:
            route["nt"] = 1
        if operation.get("permission_check"):
            route["w"] = rules.place(operation["permission_check"])
        if response.get("child_key"):
            route["k"] = response["child_key"]
        if response.get("type") == "object":
            route["rf"] = [
                [field["name"], TYPES.get(field["type"], "s"), *[str(word) for word in (field.get("enum") or [])[:1]]]
                for field in response.get("fields", [])
                if not field.get("optional")
            ]
        routes.append(route)
    facts = {"fields": fields.rows, "rules": rules.rows, "routes": routes}
    # One row a line, so that a difference between two versions can be read.
    sections = []
    for name, rows in facts.items():
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        sections.append(f'"{name}":[\n{lines}\n]')
    print("{" + ",\n".join(sections) + "}")


main()
