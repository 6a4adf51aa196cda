"""`report --format png|svg`: every chart of an evaluation as a file."""

from xml.etree import ElementTree as ET

import pytest

CHARTS = {
    f"{kind}-{metric}"
    for kind, metrics in {
        "distribution": ("answer_accuracy", "context_relevance", "response_groundedness", "faithfulness"),
        "calibration": ("answer_accuracy",),
    }.items()
    for metric in metrics
}


@pytest.mark.parametrize("format_", ["png", "svg"])
def test_each_chart_is_a_file_next_to_the_report_or_where_asked(finished, run_cli, tmp_path, format_):
    folder, printed = finished
    beside = run_cli("report", "--format", format_, cwd=folder)
    assert beside.returncode == 0, beside.stderr
    home = folder / "warehouse" / "reports" / printed["evaluation_id"]
    asked = run_cli("report", "--format", format_, "--out", tmp_path / "charts", cwd=folder)
    assert asked.returncode == 0, asked.stderr
    for done, place in ((beside, home), (asked, tmp_path / "charts")):
        files = sorted(place.glob(f"*.{format_}"))
        assert [str(path) for path in files] == sorted(done.stdout.splitlines())
        assert {path.stem for path in files} >= CHARTS
        for path in files:
            if format_ == "png":
                assert path.read_bytes().startswith(b"\x89PNG")
            else:
                assert ET.parse(path).getroot().get("role") == "img"


def test_an_unknown_format_is_refused_with_those_there_are(finished, run_cli):
    done = run_cli("report", "--format", "pdf", cwd=finished[0])
    assert done.returncode == 2
    assert "html, md, png, svg" in done.stderr
