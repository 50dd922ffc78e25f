"""A receiver written from the interface's description alone, with nothing but the standard library.

Prints its port, then for each request a line of JSON with what it makes of it.
"""
import hashlib
import hmac
import http.server
import json
import sys
import time

SECRET = sys.argv[1].encode()
WINDOW_SECS = 300


def is_genuine(headers, body, now):
    timestamp = headers.get("X-Fabric-Timestamp", "")
    if not timestamp.isdigit() or abs(now - int(timestamp)) > WINDOW_SECS:
        return False
    expected = hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(headers.get("X-Fabric-Signature", ""), "sha256=" + expected)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        now = time.time()
        verdict = {
            "genuine": is_genuine(self.headers, body, now),
            "altered": is_genuine(self.headers, body + b" ", now),
            "replayed": is_genuine(self.headers, body, now + WINDOW_SECS + 5),
            "delivery": self.headers["X-Heddle-Delivery"],
            "body": json.loads(body),
        }
        self.send_response(204)
        self.end_headers()
        print(json.dumps(verdict), flush=True)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
