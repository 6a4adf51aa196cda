"""A loopback server that speaks Chat Completions, Responses, embeddings, files and batches, with faults on request.

Runs in its own process and costs little itself. `python loopback_server.py [--port N]` prints its port. `POST /_control` takes knobs, `GET /_counters` tells what was asked.
"""

import asyncio
import hashlib
import itertools
import json
import random
import re
import sys
import time

import orjson

KNOBS = {
    "latency": 0.0,
    "latency_sigma": 0.0,  # above 0: log-normal with `latency` as its median
    # kind -> share of requests: 429, 500, 401, hang, reset, drip, truncated, malformed, html, wrong_shape, off_scale, chatty,
    # refusal, length, content_filter, content_filter_400, context_length
    "faults": {},
    "rate_headers": {},  # extra headers of every answer
    "retry_after": None,
    "quota_after": None,  # number of answered requests after which the quota is used up
    "unsupported": [],  # parameters answered with HTTP 400
    "model": None,  # name to answer as; null echoes the request's
    "seed": 0,
    "salt": "",  # another one is another judge under the same name
    "grade": None,  # the grade of every question; null is one that depends on the prompt
    "logprobs": None,
    "token_ratio": 1.0,  # tokens counted for four characters
    "batch": {},  # polls: how often it is in progress; status: how it ends; failed_lines, missing_lines, lose_create: see Batches
}
STATUS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
}


IDS = itertools.count()
"""Never reset: a provider names no two batches alike."""


class State:
    def __init__(self):
        self.knobs = dict(KNOBS)
        self.reset()

    def reset(self):
        self.requests = self.answered = self.open = self.peak_open = 0
        self.by_body = {}
        self.by_fault = {}
        self.last_body = b""
        self.tokens = 0
        self.authorizations = set()
        self.draw = random.Random(self.knobs["seed"])
        self.files = {}
        self.batches = {}


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
    return allowed[int(hashlib.sha256((STATE.knobs["salt"] + text).encode()).hexdigest(), 16) % len(allowed)]


def completion(request, content, finish="stop", **message):
    prompt = int(sum(len(m["content"]) for m in request["messages"]) / 4 * STATE.knobs["token_ratio"])
    STATE.tokens += prompt
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    if STATE.knobs["logprobs"] and request.get("logprobs"):
        choice["logprobs"] = {"content": STATE.knobs["logprobs"]}
    return orjson.dumps({
        "id": "c", "object": "chat.completion", "created": 0, "model": STATE.knobs["model"] or request["model"],
        "system_fingerprint": "fp_loopback", "choices": [choice],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 6, "total_tokens": prompt + 6, "prompt_tokens_details": {"cached_tokens": 0}},
    })  # fmt: skip


def responses(request, content):
    """The same answer as the Responses API writes it."""
    prompt = sum(len(m["content"]) for m in request["input"]) // 4
    part = {"type": "output_text", "text": content, "annotations": []}
    return orjson.dumps({
        "id": "r", "object": "response", "status": "completed", "model": STATE.knobs["model"] or request["model"],
        "output": [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": [part]}],
        "usage": {"input_tokens": prompt, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 1}},
    })  # fmt: skip


def embeddings(request):
    """Vectors of three numbers that depend on the text only, in reverse order: readers must go by the index."""
    rows = [
        {"object": "embedding", "index": n, "embedding": [len(text), text.count("a") + 1, 0.5]}
        for n, text in enumerate(request["input"])
    ]
    return orjson.dumps({"object": "list", "data": rows[::-1], "model": request["model"], "usage": {}})


def content(request, kind):
    """The body of an answer to a chat request, with what is wrong with it."""
    text = request["messages"][-1 if len(request["messages"]) < 2 else 1]["content"]
    if kind == "off_scale":
        return completion(request, '{"grade": 3}')
    if kind == "chatty":
        return completion(request, "It might be 2, or perhaps 4.")
    if kind == "refusal":
        return completion(request, None, refusal="I cannot help with that.")
    if kind == "length":
        return completion(request, '{"gra', "length")
    if kind == "content_filter":
        return completion(request, "", "content_filter")
    if kind == "wrong_shape":
        return b'{"object": "list", "data": []}'
    if '"steps"' in request["messages"][0]["content"]:
        return completion(
            request, json.dumps({"steps": ["Read the response.", "Look for greetings.", "Grade 5 when polite."]})
        )
    if '"claims"' in request["messages"][0]["content"]:
        return completion(request, json.dumps({"claims": ["One thing is so.", "Another thing is so."]}))
    return completion(request, f'{{"grade": {grade(text) if STATE.knobs["grade"] is None else STATE.knobs["grade"]}}}')


class Batches:
    """`/files` and `/batches`: a batch ends after some polls, with failed lines, missing lines, or as expired."""

    @staticmethod
    def upload(body):
        boundary = body.split(b"\r\n", 1)[0]
        part = next(part for part in body.split(boundary) if b"filename=" in part)
        return Batches.store(part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n"))

    @staticmethod
    def store(content):
        name = f"file-{len(STATE.files)}"
        STATE.files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": 0,
            "filename": "f",
            "purpose": "batch",
            "status": "processed",
        }

    @staticmethod
    def create(request):
        batch = {"id": f"batch-{next(IDS)}", "object": "batch", "endpoint": request["endpoint"], "input_file_id": request["input_file_id"],
                 "completion_window": "24h", "created_at": int(time.time()), "status": "validating", "metadata": request.get("metadata"), "polls": 0}  # fmt: skip
        STATE.batches[batch["id"]] = batch
        return batch

    @staticmethod
    def poll(name):
        batch, knobs = STATE.batches[name], STATE.knobs["batch"]
        batch["polls"] += 1
        if batch["status"] in {"validating", "in_progress"}:
            batch["status"] = "in_progress"
            if batch["polls"] > knobs.get("polls", 0):
                Batches.end(batch, knobs)
        return batch

    @staticmethod
    def end(batch, knobs):
        batch["status"] = knobs.get("status", "completed")
        if batch["status"] == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "invalid_json_line", "message": "line 1"}]}
            return
        lines = [orjson.loads(line) for line in STATE.files[batch["input_file_id"]].splitlines()]
        lines = lines[: len(lines) - knobs.get("missing_lines", 0)]
        failing = knobs.get("failed_lines", 0)
        STATE.requests += len(lines)
        done = [
            {"id": "x", "custom_id": line["custom_id"], "error": None,
             "response": {"status_code": 200, "request_id": "q", "body": orjson.loads(content(line["body"], None))}}
            for line in lines[failing:]
        ]  # fmt: skip
        error = {"error": {"message": "server error", "code": "server_error"}}
        failed = [
            {"id": "x", "custom_id": line["custom_id"], "error": None, "response": {"status_code": 500, "request_id": "q", "body": error}}
            for line in lines[:failing]
        ]  # fmt: skip
        for name, rows in (("output_file_id", done[::-1]), ("error_file_id", failed)):
            if rows:
                batch[name] = Batches.store(b"\n".join(map(orjson.dumps, rows)))["id"]


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
        path = head.split(b" ", 2)[1].split(b"?")[0]
        if path == b"/_control":
            STATE.knobs = KNOBS | orjson.loads(body)
            STATE.reset()
            self.send(200, b"{}")
        elif path == b"/_counters":
            counters = {"requests": STATE.requests, "answered": STATE.answered, "by_fault": STATE.by_fault, "tokens": STATE.tokens,
                        "peak_open": STATE.peak_open, "distinct": len(STATE.by_body), "most_repeated": max(STATE.by_body.values(), default=0),
                        "repeated": sum(count - 1 for count in STATE.by_body.values()), "authorizations": sorted(STATE.authorizations), "last_body": STATE.last_body.decode(), "batches": len(STATE.batches)}  # fmt: skip
            self.send(200, orjson.dumps(counters))
        elif path.endswith((b"/chat/completions", b"/responses", b"/embeddings")):
            self.chat(path, head, body)
        elif b"/files" in path or b"/batches" in path:
            self.batch(head, path.decode(), body)
        else:
            self.send(404, b'{"error": {"message": "no such path"}}')

    def batch(self, head, path, body):
        posted = head.startswith(b"POST")
        name = path.rsplit("/", 1)[-1]
        if path.endswith("/files"):
            self.send(200, orjson.dumps(Batches.upload(body)))
        elif path.endswith("/content"):
            self.send(200, STATE.files[path.split("/")[-2]])
        elif path.endswith("/batches") and posted:
            batch = Batches.create(orjson.loads(body))
            if STATE.knobs["batch"].get("lose_create"):
                self.transport.abort()
            else:
                self.send(200, orjson.dumps(batch))
        elif path.endswith("/batches"):
            listed = [STATE.batches[name] for name in reversed(STATE.batches)]
            self.send(200, orjson.dumps({"object": "list", "data": listed, "has_more": False}))
        elif name in STATE.batches:
            self.send(200, orjson.dumps(Batches.poll(name)))
        else:
            self.send(404, b'{"error": {"message": "no such batch"}}')

    def chat(self, path, head, body):
        knobs = STATE.knobs
        STATE.requests += 1
        STATE.open += 1
        STATE.peak_open = max(STATE.peak_open, STATE.open)
        found = re.search(rb"authorization: *([^\r]+)", head, re.IGNORECASE)
        STATE.authorizations.add(found.group(1).decode() if found else "")
        key = hashlib.blake2b(body, digest_size=12).digest()
        STATE.last_body = body
        STATE.by_body[key] = STATE.by_body.get(key, 0) + 1
        kind = fault() if knobs["faults"] else None
        if knobs["latency"]:
            wait = knobs["latency"] * (
                STATE.draw.lognormvariate(0, knobs["latency_sigma"]) if knobs["latency_sigma"] else 1.0
            )
            asyncio.get_running_loop().call_later(wait, self.answer, path, body, kind)
        else:
            self.answer(path, body, kind)

    async def drip(self, body):
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        for byte in body:
            if self.transport.is_closing():
                return
            self.transport.write(bytes([byte]))
            await asyncio.sleep(0.05)

    def answer(self, path, body, kind):
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
        elif kind == "content_filter_400":
            self.send(400, b'{"error": {"message": "The response was filtered", "code": "content_filter"}}')
        elif kind == "context_length":
            self.send(
                400, b'{"error": {"message": "maximum context length is 8192", "code": "context_length_exceeded"}}'
            )
        elif kind == "drip":
            STATE.tasks = [asyncio.ensure_future(self.drip(content(request, None)))]
        else:
            STATE.answered += 1
            self.send(
                200,
                self.answered(path, request, kind),
                b"".join(f"{k}: {v}\r\n".encode() for k, v in knobs["rate_headers"].items()),
            )

    @staticmethod
    def answered(path, request, kind):
        if path.endswith(b"/embeddings"):
            return embeddings(request)
        if path.endswith(b"/responses"):
            return responses(request, f'{{"grade": {grade(request["input"][-1]["content"])}}}')
        return content(request, kind)


async def main():
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends by itself when the process that started it is gone: nobody writes to its standard input any more.
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    try:
        import uvloop

        uvloop.run(main())
    except ImportError:
        asyncio.run(main())
