"""An example service: it prints each job, and reports that it is done."""

import base64
import hmac
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def basic(user, password):
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


for variable in ("PORT", "BUS", "TOKEN", "DOWNSTREAM_WORKER_AUTH"):
    if not os.environ.get(variable):
        sys.exit(f"{variable} is not set")

# What the bus sends, and what it wants.
CREDENTIALS = basic("jobs", os.environ["DOWNSTREAM_WORKER_AUTH"])
OURS = basic(os.environ["TOKEN"], "").decode()

# The path of each job in hand, and the attempt as which it came last.
attempts = {}
lock = threading.Lock()


def work(name, data):
    """Does a job. Doing it twice must be harmless: if this process ends before it has reported,
    the job comes again."""
    print(name, json.dumps(data), flush=True)


def do(path, data):
    """Does a job, and repeats the report until the bus has taken or refused it."""
    status = "succeeded"
    try:
        work(path.split("/")[3], data)
    except Exception as error:
        print(path, error, file=sys.stderr)
        status = "failed"
    pause = 0.1
    while True:
        attempt = attempts[path]
        if report(path, status, attempt):
            with lock:
                if attempts[path] == attempt:  # it has not come again as another
                    del attempts[path]
                    return
        time.sleep(pause)
        pause = min(2 * pause, 60)


def report(path, status, attempt):
    """Tells the bus how an attempt ended, and returns whether it has taken or refused that."""
    body = json.dumps({"status": status, "attempt": attempt}).encode()
    request = urllib.request.Request(os.environ["BUS"] + path, body, {"Authorization": OURS})
    try:
        urllib.request.urlopen(request, timeout=10).close()
        return True
    except urllib.error.HTTPError as error:
        print(path, error, error.read(), file=sys.stderr)
        return error.code < 500  # it does not wait for this attempt any more
    except OSError as error:
        print(path, error, file=sys.stderr)
        return False


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps the connection for the next job
    timeout = 60  # seconds that a connection may be idle

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        authorization = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(authorization, CREDENTIALS):
            return self.respond(401)
        try:
            job = json.loads(body)
            data, attempt = job["data"], job["attempt"]
        except (ValueError, TypeError, KeyError) as error:
            print(self.path, repr(error), file=sys.stderr)
            return self.respond(400)
        with lock:
            in_hand = self.path in attempts
            attempts[self.path] = attempt
        self.respond(202)
        if not in_hand:  # else it came again: the answer was lost, or the deadline has passed
            threading.Thread(target=do, args=(self.path, data)).start()

    def respond(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Service).serve_forever()
