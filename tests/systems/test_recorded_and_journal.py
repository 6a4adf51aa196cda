"""Recorded responses, the journal, and the fetch over any source."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import NotWritable, ProviderStopped, SystemMisconfigured
from eval_pipeline.systems.journal import Journal
from eval_pipeline.systems.response import Response, from_fields, short
from eval_pipeline.systems.source import build_source, fetch, preview, release
from eval_pipeline.tables import RESPONSES


class Fake:
    is_live = True

    def __init__(self, answer):
        self.answer, self.asked, self.open, self.most, self.closed = answer, [], 0, 0, False

    async def respond(self, item):
        self.asked.append(item["item_id"])
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.002)
        self.open -= 1
        return self.answer(item)

    async def aclose(self):
        self.closed = True


def run(items, source, path, **options):
    with Journal(path) as journal:
        return asyncio.run(fetch(items, source, journal, "e1", **options))


def recorded(root, *lines, name="r.jsonl"):
    (root / name).write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines), "utf-8")
    return build_source("aurora", SystemConfig(source="recorded", path=name), root, {})


def test_a_recorded_response_comes_with_everything_recorded_of_it(tmp_path, items):
    source = recorded(
        tmp_path,
        {
            "item_id": "a",
            "response": "yes",
            "retrieved_contexts": ["p", "q"],
            "latency_seconds": 1.5,
            "input_tokens": 7,
            "output_tokens": 2,
            "error": None,
        },
        "",
    )
    frame = run(items("a"), source, tmp_path / "j.jsonl")
    row = frame.row(0, named=True)
    assert frame.schema == RESPONSES.schema
    assert (row["response"], row["retrieved_contexts"], row["latency_seconds"]) == ("yes", ["p", "q"], 1.5)
    assert (row["input_tokens"], row["output_tokens"], row["error"], row["is_reused"]) == (7, 2, None, False)


def test_a_missing_item_and_a_recorded_error_are_rows_with_an_error_and_not_holes(tmp_path, items):
    frame = run(
        items("a", "b", "c"),
        recorded(tmp_path, {"item_id": "b", "error": "timeout"}, {"item_id": "c", "response": ""}),
        tmp_path / "j.jsonl",
    )
    assert frame["item_id"].to_list() == ["a", "b", "c"]
    assert frame["error"].to_list() == ["no recorded response", "timeout", None]
    assert frame["response"].to_list() == [None, None, ""]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: a list"),
        ('"a"', "line 2: a str"),
        ({"response": "x"}, "item_id is missing"),
        ({"item_id": 3, "response": "x"}, "item_id is not text"),
        ({"item_id": "b"}, "response is missing"),
        ({"item_id": "b", "response": 4}, "response is int"),
        ({"item_id": "a", "response": "x"}, "occurs twice"),
        ({"item_id": "b", "response": "x", "retrieved_contexts": "p"}, "not a list of texts"),
        ({"item_id": "b", "response": "x", "retrieved_contexts": [None]}, "not a list of texts"),
        ('{"item_id": "b", "response": "x", "latency_seconds": NaN}', "latency_seconds"),
        ({"item_id": "b", "response": "x", "latency_seconds": "1"}, "latency_seconds"),
        ({"item_id": "b", "response": "x", "input_tokens": True}, "input_tokens"),
        ({"item_id": "b", "response": "x", "output_tokens": 10**30}, "output_tokens"),
        ({"item_id": "b", "error": ["y"]}, "error is list"),
        ({"item_id": "b", "response": "x", "error": "y"}, "both a response and an error"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path, line, problem):
    with pytest.raises(SystemMisconfigured, match="line 2") as caught:
        recorded(tmp_path, {"item_id": "a", "response": "x"}, line)
    assert problem in str(caught.value)


def test_many_wrong_lines_are_five_and_a_number(tmp_path):
    with pytest.raises(SystemMisconfigured, match="and 7 more"):
        recorded(tmp_path, *["{"] * 12)


def test_bom_crlf_and_decomposed_hangul_ids_are_read(tmp_path, items):
    text = "\ufeff" + json.dumps({"item_id": "\u1112\u1161\u11ab", "response": "답"}, ensure_ascii=False) + "\r\n"
    (tmp_path / "r.jsonl").write_bytes(text.encode())
    source = build_source("s", SystemConfig(source="recorded", path="r.jsonl"), tmp_path, {})
    assert run(items("한"), source, tmp_path / "j.jsonl")["response"].to_list() == ["답"]


def test_a_relative_path_may_not_leave_the_project_but_an_absolute_one_may(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    recorded(tmp_path, {"item_id": "a", "response": "x"})
    (root / "link.jsonl").symlink_to(tmp_path / "r.jsonl")
    for path in ("../r.jsonl", "link.jsonl"):
        with pytest.raises(SystemMisconfigured, match="leaves the project"):
            build_source("s", SystemConfig(source="recorded", path=path), root, {})
    build_source("s", SystemConfig(source="recorded", path=str(tmp_path / "r.jsonl")), root, {})
    build_source("s", SystemConfig(source="recorded", path="${WHERE}/r.jsonl"), root, {"WHERE": str(tmp_path)})
    with pytest.raises(SystemMisconfigured, match="cannot read"):
        build_source("s", SystemConfig(source="recorded", path="none.jsonl"), root, {})


def test_the_journal_ignores_a_torn_last_line_and_goes_on_after_it(tmp_path):
    path = tmp_path / "deep" / "e.jsonl"
    with Journal(path) as journal:
        journal.add("a", Response("답 \u2028 x", ["c"], raw="not kept"))
    with path.open("ab") as file:
        file.write(b'{"item_id": "b", "resp')
    assert set(Journal(path).done()) == {"a"}
    with Journal(path) as journal:
        journal.add("c", Response(error="late"))
    assert Journal(path).done() == {"a": Response("답 \u2028 x", ["c"]), "c": Response(error="late")}
    assert b"not kept" not in path.read_bytes()


def test_the_journal_passes_over_a_damaged_line_in_the_middle(tmp_path):
    path = tmp_path / "e.jsonl"
    with Journal(path) as journal:
        journal.add("a", Response("1"))
    with path.open("ab") as file:
        file.write(b"\x00\x00\xff\n3\n{}\n")
    with Journal(path) as journal:
        journal.add("b", Response("2"))
        assert set(journal.done()) == {"a", "b"}


def test_two_runs_of_one_evaluation_do_not_write_one_journal(tmp_path):
    with Journal(tmp_path / "e.jsonl"), pytest.raises(NotWritable, match="another run"), Journal(tmp_path / "e.jsonl"):
        pass
    with Journal(tmp_path / "e.jsonl"):
        pass


@settings(max_examples=60, deadline=None)
@for_all(text=st.text(st.characters(exclude_categories=())), cut=st.integers(0, 400))
def test_any_prefix_of_a_journal_gives_whole_responses_only(tmp_path_factory, text, cut):
    path = tmp_path_factory.mktemp("j") / "e.jsonl"
    whole = {f"i{number}": Response(text, [text]) for number in range(3)}
    with Journal(path) as journal:
        for item_id, response in whole.items():
            journal.add(item_id, response)
    path.write_bytes(path.read_bytes()[:cut])
    assert Journal(path).done().items() <= whole.items()


def test_nothing_is_asked_twice_and_failed_responses_count_as_asked(tmp_path, items):
    first = Fake(lambda item: Response(error="down") if item["item_id"] == "a" else Response("ok"))
    run(items("a", "b"), first, tmp_path / "j.jsonl")
    again = Fake(lambda item: Response("new"))
    told = []
    frame = run(items("a", "b", "c"), again, tmp_path / "j.jsonl", on_response=told.append)
    assert again.asked == ["c"]
    assert again.closed
    assert frame["response"].to_list() == [None, "ok", "new"]
    assert frame["error"].to_list() == ["down", None, None]
    assert len(told) == 3


def test_reused_rows_are_marked_and_keep_their_time(tmp_path, items):
    when = datetime(2026, 1, 2, tzinfo=UTC)
    row = {
        "evaluation_id": "old",
        "item_id": "a",
        "response": "kept",
        "retrieved_contexts": None,
        "error": None,
        "latency_seconds": 1.0,
        "input_tokens": None,
        "output_tokens": None,
        "is_reused": False,
        "fetched_at": when,
    }
    source = Fake(lambda item: Response("new"))
    frame = run(items("a", "b"), source, tmp_path / "j.jsonl", reused={"a": row})
    assert source.asked == ["b"]
    assert frame["is_reused"].to_list() == [True, False]
    assert frame["evaluation_id"].to_list() == ["e1", "e1"]
    assert frame["fetched_at"][0] == when


def test_concurrency_is_bounded_and_rows_keep_the_order_of_the_items(tmp_path, items):
    source = Fake(lambda item: Response(item["item_id"]))
    ids = [f"i{number}" for number in range(40)]
    assert run(items(*ids), source, tmp_path / "j.jsonl", max_in_flight=5)["response"].to_list() == ids
    assert source.most == 5


def test_no_items_give_an_empty_table(tmp_path, items):
    assert run(items(), Fake(lambda item: Response("x")), tmp_path / "j.jsonl").schema == RESPONSES.schema


def test_a_source_that_breaks_costs_its_item_only(tmp_path, items):
    def answer(item):
        if item["item_id"] == "a":
            raise ZeroDivisionError("oh\nno")
        return Response()

    frame = run(items("a", "b"), Fake(answer), tmp_path / "j.jsonl")
    assert frame["error"].to_list() == ["ZeroDivisionError: oh no", "no response"]


def test_what_stops_the_run_lets_answers_in_flight_be_kept(tmp_path, items):
    def answer(item):
        if item["item_id"] == "i1":
            raise ProviderStopped(endpoint="x", reason="quota")
        return Response("ok")

    source = Fake(answer)
    with pytest.raises(ProviderStopped):
        run(items(*(f"i{number}" for number in range(20))), source, tmp_path / "j.jsonl", max_in_flight=4)
    done = Journal(tmp_path / "j.jsonl").done()
    assert {"i0", "i2", "i3"} <= set(done)  # all four were in flight when i1 stopped
    assert set(done) == set(source.asked) - {"i1"}
    assert len(source.asked) < 10
    assert source.closed


def test_text_that_no_table_can_hold_is_repaired(tmp_path, items):
    source = Fake(lambda item: Response("bad \ud800 end", ["\udfff", "가"]))
    row = run(items("a"), source, tmp_path / "j.jsonl").row(0, named=True)
    assert row["response"] == "bad \ufffd end"
    assert row["retrieved_contexts"] == ["\ufffd", "가"]


def test_a_preview_shows_fields_and_closes_the_source():
    source = Fake(lambda item: Response("ok", raw="{...}"))
    shown = asyncio.run(preview(source, {"item_id": "a"}))
    assert (shown.response, shown.raw, source.closed) == ("ok", "{...}", True)


def test_a_release_is_a_text_with_variables():
    config = SystemConfig(source="recorded", path="x", release="app-${SHA}")
    assert release(config, {"SHA": "9f31"}) == "app-9f31"
    with pytest.raises(SystemMisconfigured, match="SHA not set"):
        release(config, {"SHA": ""})


@for_all(st.text(st.characters(exclude_categories=())))
def test_a_foreign_text_in_a_message_is_one_printable_line(text):
    line = short(text)
    assert len(line) <= 400
    assert not set(line) & set("\n\r\x00\x1b\u202e\u2028")
    line.encode()


@for_all(
    st.dictionaries(
        st.sampled_from(
            ["response", "retrieved_contexts", "error", "latency_seconds", "input_tokens", "output_tokens"]
        ),
        st.one_of(
            st.none(), st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.one_of(st.none(), st.text()))
        ),
    )
)
def test_whatever_a_system_sends_becomes_a_row_with_an_answer_or_an_error(fields):
    response = from_fields(fields)
    assert (response.response is None) == bool(response.error)
    from dataclasses import asdict

    cells = {name: value for name, value in asdict(response).items() if name not in {"raw", "fetched_at"}}
    RESPONSES.frame([cells | {"evaluation_id": "e", "item_id": "i", "is_reused": False, "fetched_at": None}])
