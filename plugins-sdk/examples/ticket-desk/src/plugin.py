"""Opens, changes and closes tickets in Zammad.

A ticket belongs to a key, such as the id of a device. The storage keeps which one, so that a key has at most one open ticket: a
second problem with a device becomes a note.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import context, http, kv, secrets
from wit_world.imports.types import (
    Effect,
    Fault_Authentication,
    Fault_Busy,
    Fault_Denied,
    Fault_Generic,
    Fault_Invalid,
    Fault_NotFound,
    Fault_NotReady,
    Fault_RateLimit,
    Fault_Unsupported,
    FaultInfo,
)

# Seconds for which a key is reserved while its ticket is opened: longer than any call lasts.
OPENING_S = 120
OPENING = b"opening"

PRIORITIES = {"low": "1 low", "normal": "2 normal", "high": "3 high"}

# States of tickets that get no more notes. Zammad's own; a state that an administrator adds counts as open.
ENDED = ("closed", "merged", "removed")

MISSING = "the secret 'token' is missing: an access token of an agent, with the permission 'ticket.agent'"


def info(message: str, status=None, retry_after_ms=None, effect=Effect.NONE) -> FaultInfo:
    return FaultInfo(message, None, status, retry_after_ms, effect, [])


def settings() -> dict:
    return {"group": "Users", "internal": True, **json.loads(context.config())}


def retry_after_ms(response) -> int | None:
    for header in response.headers:
        if header.name.lower() == "retry-after" and header.value.isdigit():
            return int(header.value) * 1000
    return None


def refusal(response, is_write: bool) -> Err:
    """What an answer means that is no success. A status from 500 on says nothing of what became of a write."""
    status = response.status
    try:
        said = json.loads(response.body)
        said = said.get("error_human") or said.get("error") or ""
    except (ValueError, AttributeError):
        said = ""
    said = f": {str(said)[:300]}" if said else ""
    effect = Effect.POSSIBLE if is_write and status >= 500 else Effect.NONE
    details = info(f"Zammad answered status {status}{said}", status, retry_after_ms(response), effect)
    kinds = {
        401: Fault_Authentication,
        403: Fault_Denied,
        404: Fault_NotFound,
        422: Fault_Invalid,
        429: Fault_RateLimit,
        502: Fault_NotReady,
        503: Fault_NotReady,
        504: Fault_NotReady,
    }
    return Err(kinds.get(status, Fault_Generic)(details))


def send(method, path: str, body: dict | None = None):
    token = secrets.get("token")
    if token is None:
        raise Err(Fault_Authentication(info(MISSING)))
    content = http.Body_None_() if body is None else http.Body_Json(json.dumps(body))
    request = http.Request(method, path, [], content, None, None)
    auth = http.Auth_Inject([(http.Place_Header(("Authorization", "Token token=")), token)])
    return http.open("zammad").send(request, auth)


def asked(method, path: str, body: dict | None = None) -> dict:
    """Sends a request. Returns the object of the answer."""
    response = send(method, path, body)
    if response.status not in (200, 201):
        raise refusal(response, method != http.Method.GET)
    found = json.loads(response.body)
    if not isinstance(found, dict):
        raise Err(Fault_Generic(info("Zammad answered something else than an object", response.status)))
    return found


def place(key: str) -> str:
    return f"ticket:{key}"


def read(ticket_id: int) -> dict | None:
    """The ticket with the names of its relations, or None where it is gone."""
    try:
        return asked(http.Method.GET, f"/api/v1/tickets/{ticket_id}?expand=true")
    except Err as error:
        if isinstance(error.value, Fault_NotFound):
            return None
        raise


def known(key: str) -> dict:
    """What is kept of the ticket of a key."""
    stored = kv.get(place(key))
    if stored is None or stored.value == OPENING:
        raise Err(Fault_NotFound(info(f"'{key}' has no ticket")))
    return json.loads(stored.value)


def article(text: str, subject: str | None = None) -> dict:
    written = {"body": text, "type": "note", "content_type": "text/plain", "internal": settings()["internal"]}
    return written if subject is None else {**written, "subject": subject}


def shown(ticket: dict) -> dict:
    url = (settings().get("public-url") or settings()["zammad-url"]).rstrip("/")
    return {"ticket_id": ticket["id"], "number": ticket["number"], "url": f"{url}/#ticket/zoom/{ticket['id']}"}


def add_note(ticket: dict, text: str) -> dict:
    return asked(http.Method.POST, "/api/v1/ticket_articles", {"ticket_id": ticket["id"], **article(text)})


def reserve(key: str, stored) -> None:
    """Marks that the ticket of a key is being opened. Of several calls at once only one gets through."""
    expected = kv.Expected_Absent() if stored is None else kv.Expected_Version(stored.version)
    mark = kv.Op(place(key), expected, kv.Change_Set(kv.NewValue(OPENING, OPENING_S)))
    if not kv.transact([mark]):
        raise Err(Fault_Busy(info(f"another call opens the ticket of '{key}'", None, 1000)))


def open_ticket(params: dict) -> dict:
    key, text = params["key"], params["text"]
    stored = kv.get(place(key))
    if stored is not None and stored.value == OPENING:
        raise Err(Fault_Busy(info(f"another call opens the ticket of '{key}'", None, 1000)))
    if stored is not None:
        ticket = read(json.loads(stored.value)["id"])
        if ticket is not None and ticket.get("state") not in ENDED:
            add_note(ticket, text)
            return {**shown(ticket), "is_new": False}
    reserve(key, stored)
    title = params["title"]
    ticket = {
        "title": title,
        "group": settings()["group"],
        "customer": settings()["customer"],
        "priority": PRIORITIES[params.get("priority", "normal")],
        # The customer sees what the ticket is about.
        "article": {**article(text, title), "internal": False},
    }
    try:
        ticket = asked(http.Method.POST, "/api/v1/tickets", ticket)
    except Err as error:
        # The key stays reserved where the ticket may be there: a call right away could open a second one.
        if error.value.value.effect == Effect.NONE:
            kv.delete(place(key))
        raise
    kept = {"id": ticket["id"], "number": ticket["number"]}
    kv.set(place(key), json.dumps(kept).encode(), None)
    return {**shown(ticket), "is_new": True}


def note(params: dict) -> dict:
    ticket = known(params["key"])
    written = add_note(ticket, params["text"])
    return {"ticket_id": ticket["id"], "number": ticket["number"], "article_id": written["id"]}


def close_ticket(params: dict) -> dict:
    key = params["key"]
    ticket = known(key)
    change = {"state": "closed"}
    if "text" in params:
        change["article"] = article(params["text"])
    try:
        asked(http.Method.PUT, f"/api/v1/tickets/{ticket['id']}", change)
    except Err as error:
        # What is gone is not kept: the next problem gets a ticket of its own.
        if isinstance(error.value, Fault_NotFound):
            kv.delete(place(key))
        raise
    kv.delete(place(key))
    return {"ticket_id": ticket["id"], "number": ticket["number"]}


def ticket(params: dict) -> dict:
    kept = known(params["key"])
    found = read(kept["id"])
    if found is None:
        raise Err(Fault_NotFound(info(f"the ticket {kept['number']} is not in Zammad any more")))
    return {
        **shown(found),
        "title": found["title"],
        "state": found["state"],
        "articles": found.get("article_count") or 0,
        "updated_at": found.get("updated_at"),
    }


ACTIONS = {"open-ticket": open_ticket, "note": note, "close-ticket": close_ticket, "ticket": ticket}


class Actions(exports.Actions):
    def run(self, action_id: str, params: str) -> str:
        action = ACTIONS.get(action_id)
        if action is None:
            raise Err(Fault_Unsupported(info(f"there is no action '{action_id}'")))
        return json.dumps(action(json.loads(params)))


class Lifecycle(exports.Lifecycle):
    def check(self) -> str | None:
        """Shows as whom Zammad knows the token."""
        return json.dumps({"agent": asked(http.Method.GET, "/api/v1/users/me").get("login")})
