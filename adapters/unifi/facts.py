"""Makes facts.json from a contract of the vendor's API.

    python3 facts.py CONTRACT > facts.json

Keeps bare facts: routes, names, types, lengths, enumerations. A route is named by its method and path; several commands
that share a path have the command behind it. What a body may hold is JSON Schema. One line per route, so that a later
contract shows as a short difference.
"""

import json
import re
import sys

TYPES = {"string": "string", "string(uuid)": "string", "string(date)": "string", "integer": "integer",
         "number": "number", "boolean": "boolean", "object": "object", "file": "string"}
LENGTH = re.compile(r"\.\{(\d+),(\d+)\}")
# Numbers on some releases, and texts on others.
LOOSE = {"channel", "tx_power"}


def single(kind):
    return {"type": TYPES[kind]} if kind in TYPES else {}


def schema_of(field):
    kind = field["type"]
    inner = re.fullmatch(r"array<(.*)>", kind)
    if inner or kind == "array":
        return {"type": "array", "items": single(inner.group(1) if inner else "any")}
    out = single(kind)
    if field["name"].split(".")[-1] in LOOSE and kind == "string":
        return {"type": ["string", "integer"]}
    if field.get("enum"):
        values = [value for value in field["enum"] if value is not None]
        if kind == "boolean":
            return out
        out["enum"] = values
    length = LENGTH.fullmatch(field.get("pattern") or "")
    low, high = (int(length.group(1)), int(length.group(2))) if length else (field.get("min_len"), field.get("max_len"))
    for word, bound in (("minLength", low), ("maxLength", high), ("minimum", field.get("min")), ("maximum", field.get("max"))):
        if bound is not None and not (word == "minLength" and bound == 0):
            out[word] = bound
    # What a pattern says beyond lengths stays with the controller, but for whether nothing is a value.
    if kind == "string" and "enum" not in out and "minLength" not in out and refuses_nothing(field.get("pattern")):
        out["minLength"] = 1
    return out


def refuses_nothing(pattern):
    try:
        return bool(pattern) and not re.fullmatch(pattern, "")
    except re.error:
        return False


def merged(old, new):
    """The schema of a field that two variants of an object have."""
    if not old or not new:
        return old or new
    out = dict(old)
    for word, value in new.items():
        if word == "enum" and "enum" in old:
            out["enum"] = old["enum"] + [one for one in value if one not in old["enum"]]
        elif word in ("properties", "items", "required"):
            out.setdefault(word, value)
        elif word not in old:
            out[word] = value
        elif word == "type" and old[word] != value:
            # Each variant has a type of its own.
            kinds = [kind for one in (old[word], value) for kind in (one if isinstance(one, list) else [one])]
            return {"type": sorted(set(kinds))}
        elif old[word] != value:
            # Each variant has a bound of its own.
            del out[word]
    for word in ("enum", "minimum", "maximum", "minLength", "maxLength"):
        if word in old and word not in new:
            out.pop(word, None)
    return out


def place(root, path, schema, required):
    node = root
    parts = [part for part in path.split(".") if part != "[]"]
    for index, part in enumerate(parts):
        name, is_list = part.removesuffix("[]"), part.endswith("[]")
        properties = node.setdefault("properties", {})
        is_last = index == len(parts) - 1
        if is_last and not is_list:
            known = properties.get(name)
            properties[name] = merged(known, schema) if known is not None else schema
            if required and name not in node.setdefault("required", []):
                node["required"].append(name)
            if not node.get("required"):
                node.pop("required", None)
            return
        node = properties.setdefault(name, {"type": "array" if is_list else "object"})
        if is_list or node.get("type") == "array":
            node = node.setdefault("items", {})
        # What has fields is an object, whatever a variant of it is called.
        if node.get("type") != "object":
            node.clear()
            node["type"] = "object"


def normal(path):
    """The path with one name for the id of the object itself."""
    return re.sub(r"^(/api/s/\{site\}/rest/\w+|/v2/api/site/\{site\}/(?:apgroups|static-dns))/\{\w+\}$", r"\1/{id}", path)


def names(operation):
    base = f"{operation['method']} {normal(operation['path'])}"
    commands = (operation.get("cmd") or "").split("|")
    return [f"{base} {command}".rstrip() for command in commands]


def route(operation):
    out = {"area": operation["area"]}
    if operation.get("fields_same_as"):
        out["like"] = operation["fields_same_as"]
    body, query = {}, {}
    for field in operation["fields"]:
        required = field.get("required") is True and not field.get("when")
        if field["in"] == "query":
            query[field["name"]] = "!" if required else ""
        elif field["in"] == "multipart":
            out["file"] = field["name"]
        elif field["in"] == "body" and field["name"] not in ("", "[]", "cmd"):
            place(body, field["name"], schema_of(field), required)
    if body:
        out["body"] = {word: body[word] for word in ("properties", "required") if word in body}
    if query:
        out["query"] = query
    if operation["risk"] == "read":
        out["reads"] = True
    if operation.get("no_auth"):
        out["session"] = True
    seen = operation.get("seen_in")
    if seen and "10.1.78" not in seen:
        out["since"] = "10.2"
    return out


def main():
    contract = json.load(open(sys.argv[1], encoding="utf-8"))
    routes, by_operation = {}, {}
    for operation in contract["operations"]:
        if operation["method"] == "WS":
            continue
        made = route(operation)
        by_operation[operation["operation"]] = names(operation)[0]
        for name in names(operation):
            known = routes.get(name)
            if known is None or len(json.dumps(made)) > len(json.dumps(known)):
                routes[name] = made
    for made in routes.values():
        if "like" in made:
            made["like"] = by_operation[made["like"]]
    compact = lambda value: json.dumps(value, separators=(",", ":"))
    lines = ",\n".join(f"{json.dumps(name)}:{compact(routes[name])}" for name in sorted(routes))
    print('{"routes":{\n' + lines + "\n}}")


main()
