"""Tries every frame and every close code of the event stream; prints which it has said, heard and seen.

Every frame that is heard is checked against the fields that it may have, whatever part it comes in.

Arguments: the server's address, an administrator's access token, an API key, a site's id, the server's process id.
"""

import contextlib
import datetime
import json
import os
import signal
import sys
import time
import urllib.request
import uuid

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

BASE, TOKEN, API_KEY, SITE, PROCESS = sys.argv[1:6]
ADDRESS = BASE.replace("http://", "ws://") + "/api/v1/ws"
PASSWORD = os.environ["PASSWORD"]
ABSENT = "01900000-0000-7000-8000-000000000000"
said, frames, codes, reasons = set(), set(), set(), set()
opened = contextlib.ExitStack()


def texts(value):
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


def text(value):
    return isinstance(value, str) and value != ""


def identifier(value):
    return str(uuid.UUID(value)) == value


def identifiers(value):
    return isinstance(value, list) and all(identifier(one) for one in value)


def moment(value):
    parsed = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    return value.endswith("Z") and abs((datetime.datetime.now(datetime.timezone.utc) - parsed).total_seconds()) < 600


def number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def denials(value):
    return bool(value) and all(set(one) == {"reason", "patterns"} and one["reason"] and one["patterns"] for one in value)


EVENT = {
    "id": identifier, "seq": number, "event_type": text, "category": text, "priority": text,
    "organization_id": identifier, "occurred_at": moment, "schema_version": number,
    "causation_id": lambda value: value is None or identifier(value), "payload": lambda value: isinstance(value, dict),
}


def event_fields(value):
    fits("event", EVENT, value)
    return True


# The fields of every frame of the service, and what they hold.
SERVER = {
    "connected": {"available_events": texts, "seq": number},
    "event": {"event": event_fields},
    "subscribed": {"subscriptions": texts},
    "unsubscribed": {"subscriptions": texts},
    "subscription_denied": {"patterns": texts, "reason": text, "denials": denials},
    "filters_set": {"site_ids": identifiers},
    "resumed": {"organization_id": identifier, "last_seq": number, "truncated": lambda value: isinstance(value, bool)},
    "pong": {"timestamp": moment},
    "session_revoked": {},
    "error": {"message": text},
}


def fits(name, fields, value):
    assert set(value) <= set(fields), (name, value)
    for field, check in fields.items():
        assert field in value and check(value[field]), (name, field, value)


def request(method, path, body=None, token=TOKEN):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    asked = urllib.request.Request(f"{BASE}/api/v1{path}", data, headers, method=method)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def log_in(name):
    return request("POST", "/auth/login", {"login": name, "password": PASSWORD})["access_token"]


class Stream:
    def __init__(self, address=ADDRESS, **options):
        self.socket = opened.enter_context(connect(address, open_timeout=20, proxy=None, **options))

    def say(self, **frame):
        said.add(frame["type"])
        self.socket.send(json.dumps(frame))

    def hear(self):
        received = self.socket.recv(timeout=20)
        assert isinstance(received, str), "frames are text"
        frame = json.loads(received)
        frames.add(frame["type"])
        fits(frame["type"], SERVER[frame["type"]], {name: held for name, held in frame.items() if name != "type"})
        return frame

    def ask(self, **frame):
        self.say(**frame)
        return self.hear()

    def settle(self, answer, **frame):
        """Asks, and passes over the events that were on their way before the answer."""
        heard = self.ask(**frame)
        while heard["type"] == "event":
            heard = self.hear()
        assert heard["type"] == answer, heard

    def closed(self, code, reason):
        """The connection ends with this and nothing else."""
        try:
            frame = self.socket.recv(timeout=20)
        except ConnectionClosed:
            seen = (self.socket.close_code, self.socket.close_reason)
            assert seen == (code, reason), (seen, (code, reason))
            codes.add(code)
            reasons.add(reason)
        else:
            raise AssertionError(f"{frame} instead of a close with {code}")


def authenticated(token=TOKEN):
    stream = Stream()
    frame = stream.ask(type="auth", token=token)
    assert frame["type"] == "connected", frame
    return stream, frame["available_events"]


def event(stream, name):
    while True:
        frame = stream.hear()
        assert frame["type"] == "event", frame
        if frame["event"]["event_type"] == name:
            return frame["event"]


def authentication():
    _, available = authenticated()
    assert "device.offline" in available and "user.created" in available, available
    by_query = Stream(f"{ADDRESS}?token={TOKEN}")
    assert by_query.hear()["type"] == "connected"
    by_cookie = Stream(additional_headers={"cookie": f"svc_access={TOKEN}"}, origin="https://ui.example")
    assert by_cookie.hear()["type"] == "connected"
    # With a cookie that says nothing, as without one.
    stale = {"cookie": "svc_access=eyJ0.no.token; svc_csrf=x"}
    behind_stale = Stream(additional_headers=stale)
    assert behind_stale.ask(type="auth", token=TOKEN)["type"] == "connected"
    late_behind_stale = Stream(additional_headers=stale)
    Stream(f"{ADDRESS}?token=eyJ0.no.token").closed(1008, "token is not valid")
    # Both spellings of a path are one, and what is offered beside it is left aside.
    slashed = Stream(f"{ADDRESS}/?token={TOKEN}", compression="deflate")
    assert slashed.hear()["type"] == "connected"
    own = Stream(f"{ADDRESS}?token={TOKEN}", origin=BASE)
    assert own.hear()["type"] == "connected"
    # A ping of the protocol says nothing about who it is from.
    pinged = Stream()
    assert pinged.socket.ping().wait(20), "a ping is answered by a pong"
    assert pinged.ask(type="auth", token=TOKEN)["type"] == "connected"
    with_key = {"x-api-key": API_KEY}
    refusal = "API keys are not accepted here: authenticate with an access token"
    Stream(additional_headers=with_key).closed(1008, refusal)
    Stream(f"{ADDRESS}?token={API_KEY}").closed(1008, refusal)
    Stream(origin="https://evil.example").closed(1008, "origin not allowed")
    stream = Stream()
    stream.say(type="subscribe", subscriptions=["device.*"])
    stream.closed(1008, "first frame must be auth with a token")
    stream = Stream()
    stream.say(type="auth", token="eyJ0.no.token")
    stream.closed(1008, "token is not valid")
    stream = Stream()
    stream.say(type="auth", token=API_KEY)
    stream.closed(1008, refusal)
    for first in ('"text"', "no json", '{"type": "auth"}', b"binary"):
        stream = Stream()
        stream.socket.send(first)
        stream.closed(1008, "first frame must be auth with a token")
    silent, started = Stream(), time.monotonic()
    silent.closed(1008, "authentication took longer than 10 s")
    assert 9 < time.monotonic() - started < 13, time.monotonic() - started
    late_behind_stale.closed(1008, "the svc_access cookie is not valid, and no auth frame came within 10 s")


def subscriptions():
    stream, _ = authenticated()
    frame = stream.ask(type="subscribe", subscriptions=["user.*", "device.status.changed", "*"])
    assert frame == {"type": "subscribed", "subscriptions": ["*", "device.status.changed", "user.*"]}, frame
    frame = stream.ask(type="unsubscribe", subscriptions=["user.*", "never.subscribed"])
    assert frame == {"type": "unsubscribed", "subscriptions": ["*", "device.status.changed"]}, frame
    frame = stream.ask(type="subscribe", subscriptions=["network.*", "dev*", "x" * 201, "device.*"])
    assert frame["type"] == "subscription_denied", frame
    assert frame["patterns"] == ["network.*", "dev*", "x" * 201], frame
    why = {pattern: denial["reason"] for denial in frame["denials"] for pattern in denial["patterns"]}
    assert "prefix" in why["network.*"] and "'*'" in why["dev*"] and "200" in why["x" * 201], why
    assert all(reason in frame["reason"] for reason in why.values()), frame
    assert stream.hear()["subscriptions"] == ["*", "device.*", "device.status.changed"]
    frame = stream.ask(type="set_filters", site_ids=[ABSENT, SITE])
    assert frame == {"type": "filters_set", "site_ids": [SITE]}, frame
    time.sleep(1.1)
    frame = stream.ask(type="set_filters", site_ids=[])
    assert frame == {"type": "filters_set", "site_ids": []}, frame
    frame = stream.ask(type="ping")
    assert frame["type"] == "pong" and frame["timestamp"].endswith("Z"), frame
    many, _ = authenticated()
    assert many.ask(type="subscribe", subscriptions=[f"device.n{n}" for n in range(200)])["type"] == "subscribed"
    frame = many.ask(type="subscribe", subscriptions=["device.one_more", "device.n7"])
    assert frame["type"] == "subscription_denied" and "200" in frame["reason"], frame
    assert frame["patterns"] == ["device.one_more"], frame
    assert len(many.hear()["subscriptions"]) == 200, "one that is there already is no more"
    frame = many.ask(type="unsubscribe", subscriptions=[f"device.n{n}" for n in range(200)])
    assert frame == {"type": "unsubscribed", "subscriptions": []}, frame


def events():
    stream, _ = authenticated()
    stream.ask(type="subscribe", subscriptions=["*"])
    secret = {"secret": "canary", "kept": [{"credentials": "canary", "n": 1}]}
    receipt = request("POST", "/fabric/ingest", {"name": "Py Test", "payload": secret})
    assert receipt["accepted"] is True and receipt["name"] == "pytest", receipt
    seen = event(stream, "ingest.external")
    assert seen["payload"] == {"name": "pytest", "data": {"kept": [{"n": 1}]}}, seen
    for field in ("category", "priority", "organization_id"):
        assert seen[field], seen
    stream.say(type="resume", after_seq=seen["seq"] - 1)
    assert event(stream, "ingest.external")["id"] == seen["id"]
    frame = stream.hear()
    org = seen["organization_id"]
    assert frame == {"type": "resumed", "organization_id": org, "last_seq": seen["seq"], "truncated": False}, frame
    frame = stream.ask(type="resume", after_seq=seen["seq"], organization_id=org)
    assert frame["last_seq"] == seen["seq"], frame
    # Another organization's numbers are its own.
    other = request("POST", "/organizations", {"name": "Elsewhere"})["id"]
    time.sleep(1.1)
    stream.say(type="resume", after_seq=0, organization_id=other)
    while (frame := stream.hear())["type"] == "event":
        pass
    assert (frame["type"], frame["organization_id"]) == ("resumed", other), frame


def narrowed():
    """Of one site, and of no site, and then of all again."""
    other = request("POST", "/sites", {"name": "Elsewhere"})["id"]
    stream, _ = authenticated()
    stream.ask(type="subscribe", subscriptions=["controller.*"])
    stream.settle("filters_set", type="set_filters", site_ids=[other])
    key = {"name": "c", "username": "root", "password": "x"}
    key = request("POST", "/credentials", key)["id"]

    def add(site, name):
        body = {"name": name, "site_id": site, "vendor": "openwrt", "url": "http://127.0.0.1:9", "credential_id": key}
        return request("POST", "/controllers", body)["id"]

    def stage(controller):
        path = f"/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation=create"
        return request("POST", path, {"payload": {"name": "r", "src": "wan", "target": "ACCEPT"}})["id"]

    here, there = add(SITE, "here"), add(other, "there")
    stage(here)
    staged = stage(there)
    seen = event(stream, "controller.change.staged")
    assert seen["payload"]["change_id"] == staged, seen
    time.sleep(1.1)
    stream.settle("filters_set", type="set_filters", site_ids=[])
    staged = stage(here)
    assert event(stream, "controller.change.staged")["payload"]["change_id"] == staged


def errors():
    stream, _ = authenticated()
    for text in ("no json", "[]", '{"type": "unknown"}', '{"type": "subscribe"}'):
        stream.socket.send(text)
        frame = stream.hear()
        assert frame["type"] == "error" and frame["message"], frame
    time.sleep(1.1)
    stream.socket.send(b"binary")
    assert stream.hear() == {"type": "error", "message": "frames are JSON text"}
    assert stream.ask(type="auth", token=TOKEN)["type"] == "error"
    assert stream.ask(type="set_filters", site_ids=["no uuid"])["type"] == "error"
    assert stream.ask(type="ping")["type"] == "pong", "an error ends nothing"


def closes():
    stream, _ = authenticated()
    stream.socket.close(1000, "bye")
    assert stream.socket.close_code == 1000, stream.socket.close_code
    codes.add(1000)
    flood, _ = authenticated()
    for _ in range(6):
        flood.say(type="ping")
    for _ in range(5):
        assert flood.hear()["type"] == "pong"
    flood.closed(1008, "more than 5 frames per second")
    paced, _ = authenticated()
    for _ in range(12):
        assert paced.ask(type="ping")["type"] == "pong", "five in a second are never too many"
        time.sleep(0.21)
    pinging, _ = authenticated()
    for _ in range(20):
        assert pinging.socket.ping().wait(20)
    assert pinging.ask(type="ping")["type"] == "pong", "pings of the protocol are counted apart"
    # In one go, so that all of them come within a second.
    with pinging.socket.send_context():
        for number in range(60):
            pinging.socket.protocol.send_pong(str(number).encode())
    pinging.closed(1008, "more than 50 pings and pongs per second")
    parts, _ = authenticated()
    # A text in parts is one frame to whoever counts frames, however many parts it has within reason.
    parts.socket.send(iter(['{"type":', *[""] * 100, ' "ping"}']))
    assert parts.hear()["type"] == "pong"
    with parts.socket.send_context():
        parts.socket.protocol.send_text(b"", fin=False)
        for _ in range(300):
            parts.socket.protocol.send_continuation(b"", fin=False)
    parts.closed(1008, "more than 200 parts of messages per second")
    large, _ = authenticated()
    large.socket.send("x" * 70_000)
    large.closed(1009, "a frame has at most 65536 bytes")
    bad, _ = authenticated()
    with bad.socket.send_context():
        bad.socket.protocol.send_text(b"\xff\xfe")
    bad.closed(1007, "text is not UTF-8")
    odd, _ = authenticated()
    # Without a mask, which the library would not send.
    odd.socket.socket.sendall(b"\x81\x02{}")
    odd.closed(1002, "not a frame of RFC 6455")


def ends():
    user = {"username": "vera", "email": "vera@acme.test", "password": PASSWORD, "role": "viewer"}
    request("POST", "/users", user)
    token = log_in("vera")
    stream, available = authenticated(token)
    assert not any(name.startswith("user.") for name in available), available
    frame = stream.ask(type="subscribe", subscriptions=["user.*", "system.*", "admin.*", "*"])
    assert frame["patterns"] == ["user.*", "system.*", "admin.*", "*"], frame
    request("POST", "/auth/logout-all", {}, token)
    started = time.monotonic()
    assert stream.hear() == {"type": "session_revoked"}
    stream.closed(1008, "session is revoked")
    assert time.monotonic() - started < 1, time.monotonic() - started
    token = log_in("vera")
    held = [authenticated(token) for _ in range(25)]
    more = Stream()
    more.say(type="auth", token=token)
    more.closed(1013, "too many connections")
    assert request("GET", "/ws/stats")["active_connections"] >= 25
    last, _ = authenticated()
    os.kill(int(PROCESS), signal.SIGTERM)
    last.closed(1001, "service is stopping")
    assert len(held) == 25


with opened:
    for part in (authentication, subscriptions, events, narrowed, errors, closes, ends):
        part()
heard = {"said": sorted(said), "frames": sorted(frames), "close_codes": sorted(codes), "reasons": sorted(reasons)}
print(json.dumps(heard))
