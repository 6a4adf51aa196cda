"""`check`: what is missing or wrong in a project, before anything is spent."""

from __future__ import annotations

import asyncio

from eval_pipeline import prompts
from eval_pipeline.cli.console import LANGUAGE, emit, out, say, t
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.evaluation.project import Project


def check(
    project: Project, *, online: bool, system: str | None, show: int, judge: str | None, probe: bool, as_json: bool
) -> int:
    """Checks and prints one line a thing; returns 0 when all is well, else 2."""
    lines: list[tuple[bool, str, str]] = []

    def look(name: str, work) -> None:  # noqa: ANN001
        try:
            lines.append((True, name, work() or ""))
        except EvalPipelineError as error:
            lines.append((False, name, error.message(LANGUAGE)))

    look("evaluation.yaml", lambda: t("valid", "올바름"))
    look("prompts", _prompts)
    look("metrics", lambda: _metrics(project))
    for name in project.config.datasets:
        look(f"dataset {name}", lambda name=name: _dataset(project, name))
    for name in [system] if system else project.config.systems:
        look(f"system {name}", lambda name=name: _system(project, name, online, show))
    for name in [judge] if judge else project.config.judges:
        look(f"judge {name}", lambda name=name: _judge(project, name, online, probe))
    if as_json:
        emit([{"ok": ok, "what": name, "detail": detail} for ok, name, detail in lines])
    else:
        for ok, name, detail in lines:
            out().print(f"{'ok  ' if ok else 'FAIL'} {name:<22} {detail}", markup=False)
    if not as_json and all(ok for ok, _, _ in lines):
        say(t("Ready: eval-pipeline run", "준비됨: eval-pipeline run"))
    return 0 if all(ok for ok, _, _ in lines) else 2


def _prompts() -> str:
    broken = prompts.broken_pins()
    if broken:
        from eval_pipeline.errors import PromptInvalid

        raise PromptInvalid(prompt=", ".join(broken), reason="its text is not the released one")
    return t(f"{len(prompts.all_prompts())} texts as released", f"배포된 문구 {len(prompts.all_prompts())}개 그대로")


def _metrics(project: Project) -> str:
    from eval_pipeline.evaluation.judges import refuse_unanswerable
    from eval_pipeline.metrics import g_eval

    found = project.metrics()
    refuse_unanswerable(project, project.config.judge_name(), found)
    remarks = [g_eval.steps_remark(name, metric) for name, metric in found.items()]
    return "; ".join([", ".join(found), *(t(*one) for one in remarks if one is not None)])


def _dataset(project: Project, name: str) -> str:
    from eval_pipeline.errors import DatasetInvalid, EmptyDataset
    from eval_pipeline.intake import datasets

    config = project.config.datasets[name]
    folder = project.dataset_folder(name)
    version = datasets.load(folder, config.tag)
    if version.items.is_empty():
        raise EmptyDataset(name=name)
    moved = datasets.moved(folder, version.tag)
    if moved:
        raise DatasetInvalid(path=name, count=len(moved), problems="\n".join(moved[:20]))
    labels = datasets.labels(folder, name)
    human = int((labels["provenance"] == "human").sum())
    return t(
        f"{version.tag}: {version.items.height} items, {human} human labels",
        f"{version.tag}: 항목 {version.items.height}개, 사람 라벨 {human}개",
    )


def _system(project: Project, name: str, online: bool, show: int) -> str:
    from eval_pipeline.evaluation import trust
    from eval_pipeline.evaluation.judges import system_model
    from eval_pipeline.intake import datasets
    from eval_pipeline.systems.source import build_source, release

    config = project.config.systems[project.config.system_name(name)]
    model = system_model(name, config, project.environment)
    source = build_source(name, config, project.root, project.environment, chat_model=model)
    remarks = [t(*one) for one in trust.admit(project, name, [project.config.judge_name()])]
    text = t(
        f"{config.source}, release {release(config, project.environment)}",
        f"{config.source}, 릴리스 {release(config, project.environment)}",
    )
    if not online:
        return "; ".join([text, *remarks])
    dataset = project.config.dataset_name()
    items = datasets.load(project.dataset_folder(dataset), project.config.datasets[dataset].tag).items.head(
        max(1, show)
    )

    async def ask() -> list[str]:
        try:
            answers = [await source.respond(item) for item in items.iter_rows(named=True)]
            return [f"{answer}\n  raw: {str(answer.raw)[:2000]}" for answer in answers]
        finally:
            await source.aclose()

    return "\n".join([text, *asyncio.run(ask())])


def _judge(project: Project, name: str, online: bool, probe: bool) -> str:
    from eval_pipeline.evaluation.judges import build_judge
    from eval_pipeline.evaluation.probing import ask_once, flip_rate

    chosen = project.config.judge_name(name)
    model = build_judge(chosen, project.config.judges[chosen], project)
    texts = [f"{model.identity.model} @ {model.identity.endpoint}"]
    if online:
        texts.append(asyncio.run(ask_once(model)))
    if probe:
        texts.append(asyncio.run(flip_rate(model, LANGUAGE)))
    return "; ".join(texts)
