"""A loopback server that speaks Chat Completions, with faults on request. Runs in its own process and costs little itself.

`python loopback_server.py` prints its port. `POST /_control` takes knobs, `GET /_counters` tells what was asked.
"""

import asyncio
import hashlib
import json
import random
import re
import sys

import orjson

KNOBS = {
    "latency": 0.0,
    "faults": {},  # kind -> share of requests: 429, 500, hang, reset, malformed, off_scale, chatty, refusal, length, wrong_shape, html, drip
    "retry_after": None,
    "quota_after": None,  # number of answered requests after which the quota is used up
    "unsupported": [],  # parameters answered with HTTP 400
    "model": None,  # name to answer as; null echoes the request's
    "seed": 0,
    "logprobs": None,
}
STATUS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
}


class State:
    def __init__(self):
        self.knobs = dict(KNOBS)
        self.reset()

    def reset(self):
        self.requests = self.answered = self.open = self.peak_open = 0
        self.by_body = {}
        self.by_fault = {}
        self.tokens = 0
        self.authorizations = set()
        self.draw = random.Random(self.knobs["seed"])


STATE = State()


def grade(text):
    """A deterministic allowed grade for a prompt: the reply depends on the question only."""
    allowed = (
        (0, 2, 4)
        if re.search(r"0, 2 or 4|0, 2, 4", text)
        else (0, 1, 2)
        if re.search(r"0, 1 or 2|0, 1, 2", text)
        else (0, 1)
    )
    return allowed[int(hashlib.sha256(text.encode()).hexdigest(), 16) % len(allowed)]


def completion(request, content, finish="stop", **message):
    prompt = sum(len(m["content"]) for m in request["messages"]) // 4
    STATE.tokens += prompt
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    if STATE.knobs["logprobs"] and request.get("logprobs"):
        choice["logprobs"] = {"content": STATE.knobs["logprobs"]}
    return orjson.dumps({
        "id": "c", "object": "chat.completion", "created": 0, "model": STATE.knobs["model"] or request["model"],
        "system_fingerprint": "fp_loopback", "choices": [choice],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 6, "total_tokens": prompt + 6, "prompt_tokens_details": {"cached_tokens": 0}},
    })  # fmt: skip


def fault():
    kinds = STATE.knobs["faults"]
    roll = STATE.draw.random()
    for kind, share in kinds.items():
        if roll < share:
            STATE.by_fault[kind] = STATE.by_fault.get(kind, 0) + 1
            return kind
        roll -= share
    return None


class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.buffer = b""

    def data_received(self, data):
        self.buffer += data
        while True:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            match = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            length = int(match.group(1)) if match else 0
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.handle(head, rest[:length])

    def send(self, status, body, headers=b""):
        if not self.transport.is_closing():
            head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n" % (
                status,
                STATUS[status],
                len(body),
                headers,
            )
            self.transport.write(head + body)

    def handle(self, head, body):
        path = head.split(b" ", 2)[1]
        if path == b"/_control":
            STATE.knobs = KNOBS | orjson.loads(body)
            STATE.reset()
            self.send(200, b"{}")
        elif path == b"/_counters":
            counters = {"requests": STATE.requests, "answered": STATE.answered, "by_fault": STATE.by_fault, "tokens": STATE.tokens,
                        "peak_open": STATE.peak_open, "distinct": len(STATE.by_body), "most_repeated": max(STATE.by_body.values(), default=0),
                        "repeated": sum(count - 1 for count in STATE.by_body.values()), "authorizations": sorted(STATE.authorizations)}  # fmt: skip
            self.send(200, orjson.dumps(counters))
        elif path.endswith(b"/chat/completions"):
            self.chat(head, body)
        else:
            self.send(404, b'{"error": {"message": "no such path"}}')

    def chat(self, head, body):
        knobs = STATE.knobs
        STATE.requests += 1
        STATE.open += 1
        STATE.peak_open = max(STATE.peak_open, STATE.open)
        found = re.search(rb"authorization: *([^\r]+)", head, re.IGNORECASE)
        STATE.authorizations.add(found.group(1).decode() if found else "")
        key = hashlib.blake2b(body, digest_size=12).digest()
        STATE.by_body[key] = STATE.by_body.get(key, 0) + 1
        kind = fault() if knobs["faults"] else None
        if knobs["latency"]:
            asyncio.get_running_loop().call_later(knobs["latency"], self.answer, body, kind)
        else:
            self.answer(body, kind)

    def answer(self, body, kind):
        STATE.open -= 1
        knobs = STATE.knobs
        request = orjson.loads(body)
        for name in knobs["unsupported"]:
            if name in request:
                error = {
                    "error": {
                        "message": f"Unsupported parameter: '{name}'",
                        "type": "invalid_request_error",
                        "param": name,
                    }
                }
                self.send(400, orjson.dumps(error))
                return
        if knobs["quota_after"] is not None and STATE.answered >= knobs["quota_after"]:
            self.send(429, b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}')
            return
        if kind == "429":
            wait = b"" if knobs["retry_after"] is None else b"Retry-After: %s\r\n" % str(knobs["retry_after"]).encode()
            self.send(429, b'{"error": {"message": "rate limit", "code": "rate_limit_exceeded"}}', wait)
        elif kind == "500":
            self.send(500, b"{}")
        elif kind == "401":
            self.send(401, b'{"error": {"message": "bad key", "code": "invalid_api_key"}}')
        elif kind == "hang":
            return
        elif kind == "reset":
            self.transport.abort()
        elif kind == "truncated":
            self.transport.write(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"choices": ['
            )
            self.transport.close()
        elif kind == "malformed":
            self.send(200, b'{"choices": [{"message": ')
        elif kind == "html":
            self.send(200, b"<html>gateway</html>")
        else:
            STATE.answered += 1
            self.send(200, self.content(request, kind))

    def content(self, request, kind):
        text = request["messages"][1]["content"]
        if kind == "off_scale":
            return completion(request, '{"grade": 3}')
        if kind == "chatty":
            return completion(request, "It might be 2, or perhaps 4.")
        if kind == "refusal":
            return completion(request, None, refusal="I cannot help with that.")
        if kind == "length":
            return completion(request, '{"gra', "length")
        if kind == "wrong_shape":
            return b'{"object": "list", "data": []}'
        if '"claims"' in request["messages"][0]["content"]:
            return completion(request, json.dumps({"claims": ["One thing is so.", "Another thing is so."]}))
        return completion(request, f'{{"grade": {grade(text)}}}')


async def main():
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends by itself when the process that started it is gone: nobody writes to its standard input any more.
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    try:
        import uvloop

        uvloop.run(main())
    except ImportError:
        asyncio.run(main())
