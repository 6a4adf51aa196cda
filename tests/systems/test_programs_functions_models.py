"""Systems that are a Python function, a program, or a bare model."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time

import pytest

from eval_pipeline.chat import ChatReply
from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.systems.source import build_source
from eval_pipeline.vocabulary import Outcome

COUNTER = iter(range(10_000))


def item(item_id="a", user_input="why?"):
    return {
        "item_id": item_id,
        "user_input": user_input,
        "language": "en",
        "stratum": "faq",
        "reference": "the reference",
    }


def answers(root, config, *items, environment=None, at_once=1, **options):
    async def ask():
        source = build_source(
            "app", SystemConfig.model_validate(config), root, environment or dict(os.environ), **options
        )
        places = asyncio.Semaphore(at_once)

        async def one(given):
            async with places:
                return await source.respond(given)

        try:
            return await asyncio.gather(*(one(given) for given in items))
        finally:
            await source.aclose()

    return asyncio.run(ask())


def function(root, code, *items, name="answer", **options):
    module = f"app_under_test_{next(COUNTER)}"
    (root / f"{module}.py").write_text(textwrap.dedent(code))
    return answers(root, {"source": "python", "function": f"{module}:{name}"} | options, *(items or (item(),)))


def program(root, code, *items, environment=None, at_once=1, **options):
    (root / "app.py").write_text(textwrap.dedent(code))
    config = {"source": "command", "command": [sys.executable, "app.py"]} | options
    return answers(root, config, *(items or (item(),)), environment=environment, at_once=at_once)


LOOP = """
import json, sys, os, time
for line in sys.stdin:
    item = json.loads(line)
    q = item["user_input"]
"""


def is_gone(pid):
    """Gone, or dead and waiting to be collected by whoever adopted it."""
    for _ in range(100):
        listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
        if not listed.stdout.strip() or listed.stdout.startswith("Z"):
            return True
        time.sleep(0.02)
    return False


# Functions


def test_a_function_answers_with_text_or_a_mapping_plain_or_async(tmp_path):
    code = """
    import asyncio
    def answer(item): return f"{item['item_id']} {item['user_input']} {sorted(item)}"
    async def later(item):
        await asyncio.sleep(0)
        return {"response": "r", "retrieved_contexts": ("p",), "input_tokens": 3, "extra": object()}
    class App:
        class Inner:
            async def __call__(self, item): return "called"
    app = App.Inner()
    """
    assert function(tmp_path, code)[0].response == "a why? ['item_id', 'language', 'stratum', 'user_input']"
    late = function(tmp_path, code, name="later")[0]
    assert (late.response, late.retrieved_contexts, late.input_tokens, late.error) == ("r", ["p"], 3, None)
    assert function(tmp_path, code, name="app")[0].response == "called"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("return 5", "returned int"),
        ("return {'response': 5}", "response is int"),
        ("return {}", "response is missing"),
        ("raise TimeoutError('own')", "TimeoutError: own"),
        ("next(iter([]))", "StopIteration"),
        ("return {'error': 'sold out'}", "sold out"),
        ("return {'response': 'x', 'latency_seconds': float('nan')}", "latency_seconds"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_a_function_does_wrong_is_its_items_error(tmp_path, body, error, kind):
    response = function(tmp_path, f"{kind} answer(item):\n    {body}\n")[0]
    assert response.response is None
    assert error in response.error


def test_a_function_that_never_returns_costs_its_item_and_not_the_process(tmp_path):
    (tmp_path / "stuck.py").write_text("import threading\ndef answer(item): threading.Event().wait()\n")
    script = f"""
import asyncio
from pathlib import Path
from eval_pipeline.config import SystemConfig
from eval_pipeline.systems.source import build_source
source = build_source("s", SystemConfig(source="python", function="stuck:answer", timeout_seconds=0.2), Path({str(tmp_path)!r}), {{}})
print(asyncio.run(source.respond({{"item_id": "a", "user_input": "q"}})).error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "no answer within 0.2 s\n"


def test_plain_functions_run_at_the_same_time(tmp_path):
    (tmp_path / "sleepy.py").write_text("import time\ndef answer(item): time.sleep(0.3); return 'x'")
    started = time.monotonic()
    found = answers(tmp_path, {"source": "python", "function": "sleepy:answer"}, *[item()] * 20, at_once=20)
    assert [one.response for one in found] == ["x"] * 20
    assert time.monotonic() - started < 3  # one after the other: 20 x 0.3 s = 6 s


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("no_such_module_here:f", "ModuleNotFoundError"),
        ("json:nothing", "AttributeError"),
        ("json", "module:function"),
        ("json:", "module:function"),
        ("json:__name__", "is str, not a function"),
        ("broken_module:f", "RuntimeError: \\*\\*\\*"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_error_before_asking(tmp_path, given, problem):
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('sk-secret-value')")
    with pytest.raises(SystemMisconfigured, match=problem):
        answers(tmp_path, {"source": "python", "function": given}, environment={"API_KEY": "sk-secret-value"})


# Programs


def test_a_program_answers_line_by_line_and_its_own_remarks_are_passed_over(tmp_path):
    code = (
        LOOP
        + """
    print("loading model 3%"); print(json.dumps({"log": 1})); print(json.dumps({"item_id": "other", "response": "wrong"}))
    print(json.dumps({"item_id": item["item_id"], "response": q, "retrieved_contexts": [str(sorted(item))]}, ensure_ascii=False))
"""
    )
    hostile = ["한국어", "a\nb\u2028c", '"}\n{"', "$(touch pwned); `id`", "\x00", ""]
    found = program(tmp_path, code, *(item(f"i{n}", text) for n, text in enumerate(hostile)))
    assert [one.response for one in found] == hostile
    assert found[0].retrieved_contexts == ["['item_id', 'language', 'stratum', 'user_input']"]
    assert not (tmp_path / "pwned").exists()


def test_one_copy_runs_unless_the_configuration_asks_for_more(tmp_path):
    code = (
        LOOP
        + """
    time.sleep(0.1)
    print(json.dumps({"item_id": item["item_id"], "response": str(os.getpid())}))
"""
    )
    items = [item(f"i{n}") for n in range(8)]
    assert len({one.response for one in program(tmp_path, code, *items, at_once=8)}) == 1
    assert len({one.response for one in program(tmp_path, code, *items, at_once=8, max_in_flight=3)}) == 3


def test_a_crash_costs_one_item_and_shows_the_end_of_stderr_without_secrets(tmp_path):
    code = (
        LOOP
        + """
    if q == "poison":
        print("x" * 9000 + " key " + os.environ["API_KEY"] + " bad index", file=sys.stderr)
        sys.exit(7)
    print(json.dumps({"item_id": item["item_id"], "response": "ok"}))
"""
    )
    environment = dict(os.environ) | {"API_KEY": "sk-secret-value"}
    found = program(tmp_path, code, item("a"), item("b", "poison"), item("c"), environment=environment)
    assert [one.response for one in found] == ["ok", None, "ok"]
    assert "exit status 7" in found[1].error
    assert found[1].error.endswith("key *** bad index")
    assert len(found[1].error) <= 400


def test_a_program_that_ends_after_each_answer_is_started_again(tmp_path):
    code = (
        LOOP
        + """
    print(json.dumps({"item_id": item["item_id"], "response": "ok"}))
    break
"""
    )
    assert [one.response for one in program(tmp_path, code, *(item(f"i{n}") for n in range(4)))] == ["ok"] * 4


def test_a_slow_item_ends_at_the_limit_with_the_programs_children(tmp_path):
    code = (
        LOOP
        + """
    if q == "slow":
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open("child.pid", "w").write(str(child.pid))
        time.sleep(60)
    print(json.dumps({"item_id": item["item_id"], "response": "ok"}))
"""
    )
    started = time.monotonic()
    found = program(tmp_path, code, item("a"), item("b", "slow"), item("c"), timeout_seconds=1.5)
    assert [one.error for one in found] == [None, "no answer within 1.5 s", None]
    assert time.monotonic() - started < 8
    child = int((tmp_path / "child.pid").read_text())
    assert is_gone(child)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('print(json.dumps({"item_id": item["item_id"], "response": 3}))', "response is int"),
        ('print(json.dumps({"item_id": item["item_id"], "error": "no index"}))', "no index"),
        ('print("hello"); sys.exit()', "exit status 0"),
        ('print("x" * (17 * 1024 * 1024))', "longer than"),
        ('print(json.dumps({"response": "no id"})); sys.exit()', "no answer with this item_id"),
        ('print("[" * 100000); sys.exit()', "exit status 0"),
        ("os.close(0); os.kill(os.getpid(), 9)", "exit status -9"),
    ],
)
def test_what_a_program_does_wrong_is_its_items_error(tmp_path, line, error):
    response = program(tmp_path, LOOP + f"\n    {line}\n", timeout_seconds=10)[0]
    assert response.response is None
    assert error in response.error


def test_a_program_that_closes_its_input_without_reading_is_no_exception(tmp_path):
    response = program(tmp_path, "import sys; sys.exit('no licence')", item("a", "x" * 1_000_000))[0]
    assert "exit status 1" in response.error
    assert "no licence" in response.error


def test_a_program_that_cannot_be_run_is_an_error_before_asking(tmp_path):
    (tmp_path / "plain.txt").write_text("x")
    for command in ("no-such-program-here", "./none", "./plain.txt"):
        with pytest.raises(SystemMisconfigured, match="no program"):
            answers(tmp_path, {"source": "command", "command": [command]})
    with pytest.raises(SystemMisconfigured, match="`command` is empty"):
        answers(tmp_path, {"source": "command", "command": []})
    with pytest.raises(SystemMisconfigured, match="WHERE not set"):
        answers(tmp_path, {"source": "command", "command": ["${WHERE}/x"]}, environment={})


# Models


def test_a_model_gets_the_filled_messages_and_its_reply_is_the_response(tmp_path):
    model = ScriptedChat(lambda request: ChatReply("ok", input_tokens=9, output_tokens=1, latency_seconds=0.5))
    messages = [{"role": "system", "content": "Be brief, ${WHO}."}, {"role": "user", "content": "{{ user_input }}"}]
    config = {"source": "openai", "model": "m", "messages": messages}
    found = answers(
        tmp_path, config, item(user_input="${WHO} {{ item_id }}"), environment={"WHO": "Kim"}, chat_model=model
    )[0]
    assert (found.response, found.input_tokens, found.output_tokens, found.latency_seconds) == ("ok", 9, 1, 0.5)
    assert [one["content"] for one in model.requests[0].messages] == ["Be brief, Kim.", "${WHO} {{ item_id }}"]
    answers(tmp_path, {"source": "openai", "model": "m"}, item(), chat_model=model)
    assert model.requests[1].messages == [{"role": "user", "content": "why?"}]


def test_a_models_refusal_is_an_error_in_its_words(tmp_path):
    model = ScriptedChat(lambda request: ChatReply("", failure=Outcome.REFUSED, detail="policy\n7"))
    found = answers(tmp_path, {"source": "openai", "model": "m"}, item(), chat_model=model)[0]
    assert (found.response, found.error) == (None, "refused: policy 7")
    with pytest.raises(SystemMisconfigured, match="needs a chat model"):
        answers(tmp_path, {"source": "openai", "model": "m"}, item())


def test_a_model_that_must_be_opened_is_opened_once_and_closed(tmp_path):
    events = []

    class Opened(ScriptedChat):
        async def __aenter__(self):
            events.append("open")

        async def __aexit__(self, *_):
            events.append("closed")

    answers(
        tmp_path, {"source": "openai", "model": "m"}, item(), item(), at_once=2, chat_model=Opened(lambda request: "x")
    )
    assert events == ["open", "closed"]
