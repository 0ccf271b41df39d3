"""An example subscriber: it prints each event and acknowledges the batch."""

import base64
import hmac
import json
import os
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# What deliveries carry: the uuid of the subscription as the user name, and the password x.
CREDENTIALS = b"Basic " + base64.b64encode(os.environ["UUID"].encode() + b":x")

# With this secret they are signed, if the subscriber has one: whsec_ and base64.
SECRET = os.environ.get("SECRET")


def signed(headers, body):
    """Says whether a delivery is from now, and signed with the secret (Standard Webhooks)."""
    identity, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    mac = hmac.new(key, f"{identity}.{at}.".encode() + body, "sha256").digest()
    expected = b"v1," + base64.b64encode(mac)
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(expected, signature) for signature in given)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps the connection for the next batch
    timeout = 60  # seconds that a connection may be idle

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        authorization = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(authorization, CREDENTIALS):
            return self.respond(401)
        if SECRET and not signed(self.headers, body):
            return self.respond(401)
        # An exception closes the connection without a response: the batch is delivered again.
        for event in json.loads(body):
            print(event["topic"], event["type"], event["url"], flush=True)
        self.respond(204)

    def respond(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["CERT"], os.environ["KEY"])
# The handshake happens in the connection's thread, so that nobody can hold up the others.
server.socket = context.wrap_socket(
    server.socket, server_side=True, do_handshake_on_connect=False
)
server.serve_forever()
