"""Korean throughout: help, errors and their details, report and plan; a reader who knows no English is not left alone."""

import ast
import inspect
import json
import re
import subprocess
import sys

import pages
import polars as pl
import pytest

from eval_pipeline import errors
from eval_pipeline.config import load_config
from eval_pipeline.korean import _CATALOGUE, in_korean
from eval_pipeline.report.plan import TEXTS, plan_text
from eval_pipeline.report.words import _TABLE, words
from eval_pipeline.vocabulary import RULES_KO, Language

HANGUL = re.compile(r"[가-힣]")
ENGLISH = re.compile(r"[A-Za-z_]{2,}")
HELP = """
import json, sys
from eval_pipeline.cli.app import command
import typer
def walk(one, name):
    yield {"name": name, "help": one.help or "", "panel": getattr(one, "rich_help_panel", None) or "",
           "options": {p.name: getattr(p, "help", None) or "" for p in one.get_params(typer.Context(one))}}
    for sub, child in getattr(one, "commands", {}).items():
        yield from walk(child, f"{name} {sub}")
json.dump(list(walk(command(), "eval-pipeline")), sys.stdout)
"""
SAME_IN_BOTH = re.compile(r"[a-z|. ]+")
"""Choices, such as `json | python`: names that are typed."""


@pytest.fixture(scope="module")
def helps(clean_environment):
    done = subprocess.run(
        [sys.executable, "-c", HELP], capture_output=True, text=True, env=clean_environment(EVAL_LANG="ko")
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_verb_and_option_explains_itself_in_korean(helps):
    assert len(helps) > 30
    told = [
        (verb["name"], name, text) for verb in helps for name, text in [("", verb["help"]), *verb["options"].items()]
    ]
    bare = [one for one in told if not HANGUL.search(one[2]) and not (one[2] and SAME_IN_BOTH.fullmatch(one[2]))]
    assert bare == []


def test_every_error_is_korean_too():
    family = [
        one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.EvalPipelineError)
    ]
    bases = {errors.EvalPipelineError, errors.UsageError, errors.Refused, errors.Stopped}
    assert all(HANGUL.search(one.korean) for one in set(family) - bases)
    fields = {one: [set(re.findall(r"\{(\w+)", text)) for text in (one.english, one.korean)] for one in family}
    assert [one for one, (english, korean) in fields.items() if english != korean] == []


USAGE = {"run --nope": "--nope", "runn": "'run'인가요?", "run --limit x": "'--limit'", "show": "'item'", "show a b": "b", "gate --policy x": "'nightly'",
         "run --limt 3": "--limit", "query --format": "'--format'", "run --metric answer_acuracy": "evaluation.yaml"}  # fmt: skip


@pytest.mark.parametrize("line", USAGE)
def test_a_mistyped_command_is_told_in_korean_with_what_was_typed(line, run_cli, tmp_path):
    done = run_cli(*line.split(), cwd=tmp_path, EVAL_LANG="ko")
    assert done.returncode == 2
    assert USAGE[line] in done.stderr
    first = done.stderr.splitlines()[0]
    assert HANGUL.search(first.removeprefix("오류: ")), first


# Where the details of errors are written. Functions and names that hold one have these words in them.
SPOKEN = re.compile(r"problem|reason|advice")
PLACES = ("intake", "systems", "llm", "evaluation", "prompts", "config.py", "metrics/__init__.py")


def template(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def strings(node):
    """The texts that an expression can come to."""
    if (found := template(node)) is not None:
        yield found
    elif isinstance(node, ast.IfExp):
        yield from (one for part in (node.body, node.orelse) for one in strings(part))
    elif isinstance(node, ast.BoolOp):
        yield from (one for part in node.values for one in strings(part))
    elif isinstance(node, ast.List | ast.Tuple):
        yield from (one for part in node.elts for one in strings(part))


def said(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            holder = getattr(getattr(node.func, "value", None), "id", "")
            if name == "ValueError" or (name == "append" and holder == "problems"):
                yield from (one for argument in node.args for one in strings(argument))
            if "Outcome" not in ast.dump(node.func):
                keys = {"reason", "problems", "kind", "allowed"} if name[:1].isupper() else set()
                yield from (one for keyword in node.keywords if keyword.arg in keys for one in strings(keyword.value))
        elif (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and SPOKEN.search(node.targets[0].id)
        ):
            yield from strings(node.value)
        elif isinstance(node, ast.FunctionDef) and SPOKEN.search(node.name):
            found = (one.value for one in ast.walk(node) if isinstance(one, ast.Return | ast.Yield) and one.value)
            yield from (one for value in found for one in strings(value))


def details():
    for place in PLACES:
        root = pages.ROOT / "eval_pipeline" / place
        for path in [root] if root.suffix else sorted(root.rglob("*.py")):
            for text in said(ast.parse(path.read_text(encoding="utf-8"))):
                if len(ENGLISH.findall(text.replace("{}", ""))) >= 2:
                    yield path.name, text


def test_every_detail_of_an_error_is_in_the_catalogue():
    found = list(details())
    assert len(found) > 60
    missing = [
        (name, text)
        for name, text in found
        if not any(HANGUL.search(in_korean(text.replace("{}", one))) for one in ("x", ""))
    ]
    assert missing == []


@pytest.mark.parametrize("english", _CATALOGUE)
def test_a_line_of_the_catalogue_keeps_every_fact(english):
    places = re.findall(r"\{(\d?)\}", _CATALOGUE[english])
    assert len(set(places)) == len(places) if any(places) else True
    assert len(places) == english.count("{}") or "instance of" in english


def test_a_detail_keeps_its_place_and_its_facts():
    assert in_korean("  a.csv:3: 5 cells where the header has 4") == "  a.csv:3: 칸이 5개인데 머리글은 4개입니다"
    assert in_korean("Invalid value for '--limit': Input should be a valid integer") == (
        "'--limit' 값이 잘못되었습니다: 정수여야 합니다."
    )
    assert in_korean("row 7: human_score 9 is neither in [0, 1] nor a grade of m") == (
        "7행: human_score 9은(는) 0~1도 아니고 m의 등급도 아닙니다"
    )
    assert in_korean("a {} of someone: 1, {0}") == "a {} of someone: 1, {0}"


CONFIG = load_config(pages.ROOT / "eval_pipeline" / "cli" / "templates" / "evaluation.ko.yaml")
CALIBRATED = pl.DataFrame({
    "metric": ["answer_accuracy", "faithfulness"], "stratum": ["all", "all"], "decision": ["untested", "pass"],
    "label_provenance": ["constructed", "human"], "spearman_rho": [None, 0.84], "rho_lower": [None, 0.73], "pair_count": [12, 120],
})  # fmt: skip
TYPED = re.compile(
    r"`[^`]*`|(?<![A-Za-z_])(?:" + "|".join([
        "sha256", "rho", "alpha", "n", "FAIL", "BLOCKED", "INCONCLUSIVE", "PASS", "UNPROVEN", "embedded", "overlap_judge",
        *CONFIG.metrics, *CONFIG.systems, *(name for one in CONFIG.datasets.values() for name in one.strata),
    ]) + r")(?![A-Za-z_])"
)  # fmt: skip
"""Names that are typed or printed by machines, and statistics' own."""


@pytest.mark.parametrize("calibrations", [None, CALIBRATED])
def test_the_plan_has_no_english_but_names(calibrations):
    assert ENGLISH.findall(TYPED.sub("", plan_text(CONFIG, calibrations, Language.KO))) == []


def glossary():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| ([^|]+) \|$", pages.text("docs/glossary.md"), re.MULTILINE)
    return [[cell.strip() for cell in row] for row in rows[1:] if set(row[0]) != {"-", " "}]


def program_text(helps):
    yield from words(Language.KO).values()
    yield from TEXTS["ko"].values()
    yield from _CATALOGUE.values()
    yield from (one.korean for _, one in inspect.getmembers(errors, inspect.isclass) if hasattr(one, "korean"))
    yield from (text for verb in helps for text in (verb["help"], *verb["options"].values()))


def test_no_korean_text_of_the_program_uses_a_word_the_glossary_avoids(helps):
    avoided = {word.strip() for *_, cell in glossary() for word in cell.split(",") if HANGUL.search(word)}
    assert len(avoided) >= 4
    # `오류` is avoided for invalid replies; an error of the program is one.
    told = [(text, word) for text in program_text(helps) for word in avoided - {"오류"} if word in text]
    assert told == []
    assert "오류" not in words(Language.KO)["invalid_replies"]


def test_the_report_says_the_glossary_s_words():
    korean = {
        name.strip(): word.strip()
        for english, cell, _ in glossary()
        for name, word in zip(english.split(","), cell.split(","), strict=False)
    }
    for name in (
        "item",
        "stratum",
        "system",
        "judge",
        "label",
        "calibration",
        "claim",
        "response",
        "grade",
        "untested",
        "invalid",
        "gate",
    ):
        pairs = [pair for pair in _TABLE.values() if pair[0] == name]
        assert all(pair[1] == korean[name] for pair in pairs), pairs


def test_every_rule_of_the_gate_has_a_korean_name():
    code = "".join(
        path.read_text(encoding="utf-8") for path in (pages.ROOT / "eval_pipeline/stages/gating").glob("*.py")
    )
    rules = set(re.findall(r'Rule\(\s*f?"([a-z0-9 %-]+?)(?: \(\{|")', code))
    assert rules >= {"calibration", "floor", "regression", "responses"}
    assert rules - set(RULES_KO) == set()
    assert {f"rule {rule}" for rule in RULES_KO} <= set(_TABLE)
