"""A system behind HTTP, asked over a real loopback connection."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.http import wait_seconds
from eval_pipeline.systems.placeholders import fill
from eval_pipeline.systems.response import GIVEN
from eval_pipeline.systems.source import build_source, preview, release

ITEM = {"item_id": "a", "user_input": "why?", "language": "en", "stratum": "faq", "reference": "the secret reference"}


def ask(loopback, tmp_path, *items, environment=None, **options):
    request = {"url": f"{loopback.url}/chat", "json": {"query": "{{ user_input }}"}} | options.pop("request", {})
    config = SystemConfig.model_validate({"source": "http", "request": request, "retries": 0} | options)

    async def all_of_them():
        source = build_source("rag", config, tmp_path, environment or {})
        try:
            return [await source.respond(item) for item in items or (ITEM,)]
        finally:
            await source.aclose()

    responses = asyncio.run(all_of_them())
    return responses[0] if len(responses) == 1 else responses


def test_the_template_is_filled_and_the_reply_is_mapped(loopback, tmp_path):
    loopback.answer = lambda seen: loopback.json(
        {
            "answer": "because",
            "sources": [{"text": "p"}, {"text": "q"}],
            "usage": {"in": 12, "out": 3},
        }
    )
    response = ask(
        loopback,
        tmp_path,
        environment={"TOKEN": "t0k3n-value"},
        request={
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "params": {"lang": "{{ language }}"},
            "json": {
                "query": "Q: {{user_input}} ({{ item_id }})",
                "top_k": 5,
                "key": "${TOKEN}",
                "list": ["{{ stratum }}"],
            },
        },
        response={
            "response": "$.answer",
            "retrieved_contexts": "$.sources[*].text",
            "input_tokens": "$.usage.in",
            "output_tokens": "$.usage.out",
        },
    )
    assert (response.response, response.retrieved_contexts, response.error) == ("because", ["p", "q"], None)
    assert (response.input_tokens, response.output_tokens) == (12, 3)
    assert 0 < response.latency_seconds < 5
    seen = loopback.seen[0]
    assert seen["json"] == {"query": "Q: why? (a)", "top_k": 5, "key": "t0k3n-value", "list": ["faq"]}
    assert seen["headers"]["Authorization"] == "Bearer t0k3n-value"
    assert seen["path"] == "/chat?lang=en"
    assert "secret reference" not in json.dumps(loopback.seen)


HOSTILE = [
    '"}, "admin": true, {"',
    "{{ item_id }}",
    "${TOKEN}",
    "\\",
    "\u2028\x00\x07",
    "한국어 질문?",
    "a" * 100_000,
    "{{user_input}}{{ user_input }}",
    "'; DROP TABLE --",
    "<script>",
    "\r\nX-Evil: 1",
    "\ud800",
]


def test_no_question_breaks_out_of_its_place(loopback, tmp_path):
    items = [ITEM | {"user_input": text} for text in HOSTILE]
    responses = ask(loopback, tmp_path, *items, environment={"TOKEN": "never-sent"}, request={"params": {"q": "x"}})
    assert [seen["json"] for seen in loopback.seen] == [{"query": text} for text in HOSTILE]
    assert [one.response for one in responses] == [*HOSTILE[:-1], "\ufffd"]


def test_a_question_in_a_url_or_a_parameter_stays_one_value(loopback, tmp_path):
    loopback.answer = lambda seen: loopback.json({"response": "ok"})
    item = ITEM | {"user_input": "a&b=1#x/../? 한"}
    for request in (
        {"url": f"{loopback.url}/s?q={{{{ user_input }}}}&k=1"},
        {"params": {"q": "{{ user_input }}", "k": "1"}},
    ):
        ask(loopback, tmp_path, item, request={"method": "GET", "json": None} | request)
    from urllib.parse import parse_qs, urlsplit

    for seen in loopback.seen:
        assert parse_qs(urlsplit(seen["path"]).query) == {"q": [item["user_input"]], "k": ["1"]}
        assert seen["method"] == "GET"
        assert seen["json"] is None


@for_all(st.dictionaries(st.sampled_from(GIVEN), st.text(), min_size=4))
def test_a_filled_template_holds_each_text_exactly(texts):
    template = {name: f"<{{{{ {name} }}}}>" for name in GIVEN}
    assert fill(template, texts) == {name: f"<{text}>" for name, text in texts.items()}


def test_all_missing_variables_are_one_error(loopback, tmp_path):
    with pytest.raises(SystemMisconfigured) as caught:
        ask(
            loopback,
            tmp_path,
            environment={"EMPTY": "", "KNOWN": "value-of-known"},
            request={
                "url": "${RAG_URL}/x",
                "headers": {"A": "${TOKEN}", "B": "${KNOWN}"},
                "json": {"k": ["${EMPTY}"]},
                "params": {"p": "${RAG_URL}"},
            },
        )
    message = str(caught.value)
    assert "RAG_URL, TOKEN, EMPTY not set" in message
    assert "value-of-known" not in message


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"request": {"url": "ftp://x/y"}}, "request.url"),
        ({"request": {"url": "http:///x"}}, "request.url"),
        ({"request": {"headers": {"X-Key": "${TOKEN}"}}}, "header X-Key"),
        ({"response": {"response": "$.["}}, "response.response"),
    ],
)
def test_what_cannot_be_sent_is_an_error_before_asking_and_shows_no_secret(loopback, tmp_path, options, problem):
    with pytest.raises(SystemMisconfigured, match=problem) as caught:
        ask(loopback, tmp_path, environment={"TOKEN": "hunter2hunter2\n"}, **options)
    assert "hunter2" not in str(caught.value)
    assert not loopback.seen


@pytest.mark.parametrize(
    ("body", "paths", "expected"),
    [
        ({"response": "x", "c": ["p"]}, "$.c", ["p"]),
        ({"response": "x", "c": "p"}, "$.c", ["p"]),
        ({"response": "x"}, "$.c", None),
        ({"response": "x", "c": None}, "$.c", None),
        ({"response": "x", "c": []}, "$.c", []),
        ({"response": "x"}, "$.c[*].t", []),
        ({"response": "x", "c": [{"t": "p"}, {"t": "q"}]}, "$.c[*].t", ["p", "q"]),
        ({"response": "x", "c": {"d": ["p"]}}, "$..d", ["p"]),
        ({"response": "x", "c": [{"t": "p"}], "d": ["q"]}, "$.c[*].t | $.d[*]", ["p", "q"]),
    ],
)
def test_contexts_are_found_wherever_they_are_and_null_is_not_empty(loopback, tmp_path, body, paths, expected):
    loopback.answer = lambda seen: loopback.json(body)
    response = ask(loopback, tmp_path, response={"retrieved_contexts": paths})
    assert (response.error, response.retrieved_contexts) == (None, expected)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, {}, b"<html>"), "the reply is not JSON: <html>"),
        ((200, {}, b""), "the reply is not JSON"),
        ((200, {}, b"[" * 100_000), "the reply is not JSON"),
        ((200, {}, b"{}"), "nothing at $.response"),
        ((200, {}, b'{"response": null}'), "response is missing, not text"),
        ((200, {}, b'{"response": 3}'), "response is int"),
        ((401, {}, b"bad\n\x1b[31mtoken"), "HTTP 401: bad [31mtoken"),
        ((302, {"Location": "/other"}, b""), "redirects are not followed"),
        ((400, {}, b"x" * 10_000), "HTTP 400: xxx"),
        ((200, {}, b"x" * (17 * 1024 * 1024)), "larger than"),
        ((200, {"Content-Encoding": "gzip"}, b"no"), "connection failed"),
    ],
)
def test_a_bad_reply_is_a_short_error(loopback, tmp_path, answer, error):
    loopback.answer = lambda seen: answer
    response = ask(loopback, tmp_path)
    assert response.response is None
    assert error in response.error
    assert len(response.error) < 260
    assert len(loopback.seen) == 1


def test_a_server_that_echoes_the_key_does_not_put_it_into_the_error(loopback, tmp_path):
    loopback.answer = lambda seen: (403, {}, f"denied: {seen['headers']['X-Key']}".encode())
    response = ask(loopback, tmp_path, environment={"KEY": "sk-very-secret"}, request={"headers": {"X-Key": "${KEY}"}})
    assert response.error == "HTTP 403: denied: ***"


def test_what_may_pass_is_tried_again_and_what_may_not_is_not(loopback, tmp_path):
    replies = [
        (503, {}, b"busy"),
        (0, {}, b""),
        (429, {"Retry-After": "0.3"}, b""),
        loopback.json({"response": "at last"}),
    ]
    loopback.answer = lambda seen: replies[len(loopback.seen) - 1]
    started = time.monotonic()
    response = ask(loopback, tmp_path, retries=3)
    assert response.response == "at last"
    assert response.latency_seconds < 0.3 < time.monotonic() - started  # the latency is of the answering request
    assert len(loopback.seen) == 4


def test_a_lasting_failure_is_told_with_its_tries(loopback, tmp_path):
    loopback.answer = lambda seen: (500, {}, b"boom")
    assert ask(loopback, tmp_path, retries=1).error == "HTTP 500: boom (2 tries)"
    assert len(loopback.seen) == 2


def test_retry_after_is_seconds_or_a_date_and_at_most_a_minute():
    now = datetime(2026, 1, 1, 0, 0, 0, tzinfo=UTC)
    values = [
        None,
        "1.5",
        "-3",
        "3600",
        "nan",
        "soon",
        "Thu, 01 Jan 2026 00:00:20 GMT",
        "Wed, 31 Dec 2025 00:00:00 GMT",
    ]
    assert [wait_seconds(one, now) for one in values] == [0, 1.5, 0, 60, 0, 0, 20, 0]


def test_a_slow_answer_ends_at_the_limit_and_is_not_asked_again(loopback, tmp_path):
    loopback.answer = lambda seen: time.sleep(0.6) or loopback.json({"response": "late"})
    response = ask(loopback, tmp_path, timeout_seconds=0.1, retries=2)
    assert response.error == "no answer within 0.1 s"
    assert len(loopback.seen) == 1


def test_no_server_is_a_short_error(tmp_path, loopback):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert ask(loopback, tmp_path, request={"url": url}).error.startswith("connection failed: ClientConnector")


def test_cookies_do_not_go_from_one_item_to_the_next(loopback, tmp_path):
    loopback.answer = lambda seen: loopback.json({"response": "x"}, **{"Set-Cookie": "session=1"})
    ask(loopback, tmp_path, ITEM, ITEM)
    assert all("Cookie" not in seen["headers"] for seen in loopback.seen)


def test_a_preview_shows_what_was_sent_back(loopback, tmp_path):
    loopback.answer = lambda seen: loopback.json({"antwort": "x"})
    config = SystemConfig.model_validate({"source": "http", "request": {"url": loopback.url}})

    async def show():
        return await preview(build_source("rag", config, tmp_path, {}), ITEM)

    shown = asyncio.run(show())
    assert (shown.error, shown.raw) == ("the reply has nothing at $.response", '{"antwort": "x"}')


def release_of(loopback, path="$.git", environment=None, url="${U}/version", **headers):
    config = SystemConfig.model_validate(
        {
            "source": "http",
            "request": {"url": "${U}/chat", "headers": headers},
            "release": {"url": url, "path": path},
        }
    )
    return release(config, {"U": loopback.url, "OTHER": "http://localhost:1"} | (environment or {}), "rag")


def test_a_release_is_read_from_the_system_itself_with_its_own_headers(loopback):
    loopback.answer = lambda seen: loopback.json({"git": "9f31c2e", "n": 7})
    assert release_of(loopback, Authorization="Bearer ${T}", environment={"T": "tok-tok"}) == "9f31c2e"
    assert release_of(loopback, "$.n") == "7"
    assert loopback.seen[0]["headers"]["Authorization"] == "Bearer tok-tok"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((500, {}, b""), "HTTP 500"),
        ((200, {}, b"<html>"), "not JSON"),
        ((200, {}, b"{}"), "no text or number"),
        ((200, {}, b'{"git": ""}'), "no text"),
        ((200, {}, b'{"git": true}'), "no text"),
        ((200, {}, b'{"git": "a\\nb"}'), "no text"),
        ((0, {}, b""), "cannot be reached"),
    ],
)
def test_a_release_that_cannot_be_read_says_why(loopback, answer, problem):
    loopback.answer = lambda seen: answer
    with pytest.raises(SystemMisconfigured, match=problem):
        release_of(loopback)


def test_a_release_url_needs_its_variables_its_scheme_and_a_path(loopback):
    for changes, problem in (
        ({"url": "${NONE}/v"}, "NONE not set"),
        ({"url": "file:///etc/hostname"}, "must be http"),
        ({"path": "$.["}, "not a JSONPath"),
    ):
        loopback.answer = lambda seen: loopback.json({"git": "x"})
        with pytest.raises(SystemMisconfigured, match=problem):
            release_of(loopback, **changes)


def test_headers_do_not_go_to_another_host(loopback):
    loopback.answer = lambda seen: loopback.json({"git": "x"})
    other = loopback.url.replace("127.0.0.1", "localhost")
    assert release_of(loopback, url=f"{other}/v", Authorization="Bearer x") == "x"
    assert "Authorization" not in loopback.seen[0]["headers"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@for_all(body=st.binary(max_size=200))
def test_any_bytes_are_a_response_or_an_error(tmp_path, body):
    config = SystemConfig.model_validate({"source": "http", "request": {"url": "http://x"}})
    source = build_source("rag", config, tmp_path, {})
    response = source._mapped(body, body.decode("utf-8", "replace"), 0.1)
    assert (response.response is None) == bool(response.error)
