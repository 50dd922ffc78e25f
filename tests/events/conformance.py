"""Tries every frame and every close code of the event stream; prints which it has seen.

Arguments: the server's address, an administrator's access token, an API key, a site's id, the server's process id.
"""

import contextlib
import json
import os
import signal
import sys
import time
import urllib.request

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

BASE, TOKEN, API_KEY, SITE, PROCESS = sys.argv[1:6]
ADDRESS = BASE.replace("http://", "ws://") + "/api/v1/ws"
PASSWORD = os.environ["PASSWORD"]
ABSENT = "01900000-0000-7000-8000-000000000000"
frames, codes = set(), set()
opened = contextlib.ExitStack()


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
        self.socket.send(json.dumps(frame))

    def hear(self):
        frame = json.loads(self.socket.recv(timeout=20))
        frames.add(frame["type"])
        return frame

    def ask(self, **frame):
        self.say(**frame)
        return self.hear()

    def closed(self, code, reason):
        """The connection ends with this and nothing else."""
        try:
            frame = self.socket.recv(timeout=20)
        except ConnectionClosed:
            seen = (self.socket.close_code, self.socket.close_reason)
            assert seen == (code, reason), (seen, (code, reason))
            codes.add(code)
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
    Stream(origin="https://evil.example").closed(1008, "origin not allowed")
    stream = Stream()
    stream.say(type="subscribe", subscriptions=["device.*"])
    stream.closed(1008, "first frame must be auth with a token")
    stream = Stream()
    stream.say(type="auth", token="eyJ0.no.token")
    stream.closed(1008, "token is not valid")
    stream = Stream()
    stream.say(type="auth", token=API_KEY)
    stream.closed(1008, "API keys are not accepted here: authenticate with an access token")
    silent, started = Stream(), time.monotonic()
    silent.closed(1008, "authentication took longer than 10 s")
    assert 9 < time.monotonic() - started < 13, time.monotonic() - started


def subscriptions():
    stream, _ = authenticated()
    frame = stream.ask(type="subscribe", subscriptions=["user.*", "device.status.changed", "*"])
    assert frame == {"type": "subscribed", "subscriptions": ["*", "device.status.changed", "user.*"]}, frame
    frame = stream.ask(type="unsubscribe", subscriptions=["user.*", "never.subscribed"])
    assert frame == {"type": "unsubscribed", "subscriptions": ["*", "device.status.changed"]}, frame
    frame = stream.ask(type="subscribe", subscriptions=["network.*", "dev*", "x" * 201, "device.*"])
    assert frame["type"] == "subscription_denied" and frame["reason"], frame
    assert frame["patterns"] == ["network.*", "dev*", "x" * 201], frame
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
    frame = many.ask(type="subscribe", subscriptions=["device.one_more"])
    assert frame["type"] == "subscription_denied" and "200" in frame["reason"], frame


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
    assert frame == {"type": "resumed", "last_seq": seen["seq"], "truncated": False}, frame


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
    for part in (authentication, subscriptions, events, errors, closes, ends):
        part()
print(json.dumps({"frames": sorted(frames), "close_codes": sorted(codes)}))
