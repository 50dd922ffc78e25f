"""Makes facts.json from a contract of the vendor's Open API.

    python3 facts.py CONTRACT > facts.json

Keeps bare facts of the routes of one site: names, types, ranges, enumerations, codes. A route is named by its method,
version and path below the site; `v1@files` stands for `/openapi/v1/{omadacId}/files/sites/{siteId}/`. A field is
written as `s! 1..32`: a star for an array, the type (a number sign with the number of its shape for an object), an
exclamation mark where it is required, then its values or its range. One line per shape and per route, so that a later
contract shows as a short difference.
"""

import json
import re
import sys

LETTERS = {"string": "s", "integer": "i", "number": "n", "boolean": "b", "object": "o", "file": "f"}
# The contract lists no more fields of an answer than this.
ANSWER_FIELDS_MAX = 90
# Codes that say for whom or what a route is.
CODES = {-39742: "es", -44118: "code", -44119: "pro"}
SITE = re.compile(r"^/openapi/(v\d)/\{omadacId\}/(?:([a-z/-]+)/)?sites/\{siteId\}(?:/(.*))?$")
SHAPES, KNOWN = [], {}


def leaf_of(kind):
    inner = re.fullmatch(r"array<(.*)>", kind)
    return ("*", LETTERS.get(inner.group(1), "a")) if inner else ("", LETTERS.get(kind, "a"))


class Node:
    def __init__(self):
        self.stars, self.letter, self.required, self.limits, self.children = "", "", False, "", {}

    def place(self, path, stars, letter, required=False, limits=""):
        if path in ("", "[]"):
            self.stars, self.letter = "*" if path else self.stars or stars, letter
            self.required, self.limits = required, limits
            return
        first, _, rest = path.partition(".")
        name = first.removesuffix("[]")
        if not name:
            self.stars = "*"
            return self.place(rest, stars, letter, required, limits)
        child = self.children.setdefault(name, Node())
        if first.endswith("[]"):
            child.stars = "*"
        if not rest:
            child.stars, child.letter = child.stars or stars, letter
            child.required, child.limits = required, limits
        else:
            child.place(rest, stars, letter, required, limits)

    def text(self):
        kind = self.letter or "o"
        if self.children:
            shape = {name: child.text() for name, child in self.children.items()}
            mark = json.dumps(shape, sort_keys=True)
            if mark not in KNOWN:
                KNOWN[mark] = len(SHAPES)
                SHAPES.append(shape)
            kind = f"#{KNOWN[mark]}"
        return f"{self.stars}{kind}{'!' if self.required else ''}{' ' + self.limits if self.limits else ''}"


def limits_of(field, letter):
    if field.get("enum"):
        return "|".join(str(value) for value in field["enum"])
    low, high = ("min_len", "max_len") if letter == "s" else ("min", "max")
    if field.get(low) is None and field.get(high) is None:
        return ""
    part = lambda name: "" if field.get(name) is None else str(field[name])
    return f"{part(low)}..{part(high)}"


def route(operation):
    body, query, has_body = Node(), {}, False
    out = {"area": operation["area"]}
    for field in operation["fields"]:
        stars, letter = leaf_of(field["type"])
        limits = limits_of(field, letter)
        if field["in"] == "query":
            if not field["name"].startswith("sorts."):
                query[field["name"]] = f"{stars}{letter}{'!' if field['required'] else ''}{' ' + limits if limits else ''}"
        elif field["in"] == "multipart":
            out["file"] = True
        else:
            has_body = True
            body.place(field["name"], stars, letter, bool(field["required"]), limits)
    if has_body:
        out["body"] = body.text()
    if query:
        out["query"] = query
    lines = [line for line in operation.get("response") or [] if line != "paginated"]
    if lines:
        answer = Node()
        for line in lines:
            name, _, kind = line.partition(":")
            kind, _, values = kind.partition("=")
            stars, letter = leaf_of(kind or "object")
            answer.place(name, stars, letter, False, values)
        out["answer"] = answer.text()
        if len(lines) >= ANSWER_FIELDS_MAX:
            out["cut"] = True
    if "paginated" in (operation.get("response") or []):
        out["paged"] = True
    for code, word in CODES.items():
        if code in operation.get("error_codes", []):
            out[word] = True
    seen = operation["seen_in"]
    if seen in (["2026-04"], ["2025-10"]):
        out["era"] = "new" if seen == ["2026-04"] else "old"
    if operation["risk"] in ("destructive", "disruptive", "catastrophic", "read"):
        out["risk"] = operation["risk"]
    return out


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    routes = {}
    for operation in contract["operations"]:
        found = SITE.match(operation["path"])
        if operation["surface"] != "open-api" or not found:
            continue
        version, prefix, rest = found.groups()
        name = f"{operation['method']} {version}{'@' + prefix if prefix else ''} {rest or ''}".rstrip()
        routes[name] = route(operation)

    compact = lambda value: json.dumps(value, separators=(",", ":"))
    shapes = ",\n".join(compact(shape) for shape in SHAPES)
    lines = ",\n".join(f"{json.dumps(name)}:{compact(routes[name])}" for name in sorted(routes))
    print('{"shapes":[\n' + shapes + '\n],\n"routes":{\n' + lines + "\n}}")


main()
