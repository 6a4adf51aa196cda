"""The one error family. Each class takes its culprits as data and writes its own message: what, which, what to do.

    EvalPipelineError                     exit code
    ├── UsageError                        2   the command or configuration is wrong; nothing was written
    │   ├── CommandInvalid
    │   ├── ProjectNotFound
    │   ├── ConfigurationInvalid
    │   ├── UnknownName
    │   ├── ChoiceNeeded
    │   ├── FileUnreadable
    │   ├── DatasetInvalid
    │   │   └── AnswerAmbiguous
    │   ├── DatasetNotFound
    │   ├── MessageRequired
    │   ├── TagExists
    │   ├── TagInvalid
    │   ├── PromptInvalid
    │   ├── NotWritable
    │   ├── TargetExists
    │   ├── QueryFailed
    │   ├── NothingPublished
    │   ├── EvaluationNotFound
    │   ├── LabelsInvalid
    │   ├── SystemMisconfigured
    │   ├── ExtraMissing
    │   ├── SettingInvalid
    │   ├── JudgeMisconfigured
    │   └── JudgeOfRecordGone
    ├── Refused                           3   the gate's BLOCKED: it could run, and must not
    │   ├── SelfEvaluation
    │   ├── FloatingJudge
    │   ├── EmptyDataset
    │   └── NoParallelBaseline
    ├── Defect                            70  the pipeline's own fault
    └── Stopped                           5   operational and resumable
        ├── ProviderStopped
        ├── JudgeIdentityMismatch
        ├── BudgetReached
        ├── BatchWaiting
        └── Interrupted                   130

None of these classes knows how its culprits were found.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

from eval_pipeline.korean import in_korean
from eval_pipeline.vocabulary import Language

LISTED_NAMES = 20
"""Names written out in one message."""

DETAILS = frozenset({"allowed", "kind", "problems", "reason", "spent", "what"})
"""Facts that are words, not names; in a Korean message they are Korean too."""


class EvalPipelineError(Exception):
    """Base of the family. A subclass gives `english` and `korean`, two `str.format` templates over the same facts.

    Args:
        **facts: the culprits. A fact that the template needs and nobody gave is a KeyError here, not at printing.
    """

    exit_code: ClassVar[int] = 2
    english: ClassVar[str] = "{what}"
    korean: ClassVar[str] = "{what}"

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__(self.message(Language.EN))
        self.message(Language.KO)

    def message(self, language: Language) -> str:
        """The message in one language: what is wrong, which thing, what to do."""
        if language == Language.EN:
            return self.english.format_map(self.facts)
        told = {name: in_korean(str(self.facts[name])) for name in DETAILS & self.facts.keys()}
        return self.korean.format_map(self.facts | told)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name closest to a mistyped one, or an empty string when none is close."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), "")


class Defect(EvalPipelineError):
    """Something that the pipeline should have foreseen and did not."""

    exit_code = 70
    english = "This is a defect of eval-pipeline, not of your data: {kind}: {detail}. Set EVAL_TRACEBACK=1 to see where, and report it."
    korean = "데이터가 아니라 eval-pipeline의 결함입니다: {kind}: {detail}. EVAL_TRACEBACK=1로 위치를 보고 알려 주세요."


class UsageError(EvalPipelineError):
    """The command or the configuration is wrong; nothing was written."""


class CommandInvalid(UsageError):
    """A verb, option or value that the command line does not have."""

    english = "{reason}\n`{command} --help` shows what there is."
    korean = "{reason}\n쓸 수 있는 것은 `{command} --help`로 보세요."


class ProjectNotFound(UsageError):
    english = (
        "No evaluation.yaml in {folder} or any folder above it. Run `eval-pipeline init DIR`, or set EVAL_PROJECT."
    )
    korean = "{folder}와 그 상위 폴더에 evaluation.yaml이 없습니다. `eval-pipeline init DIR`을 실행하거나 EVAL_PROJECT를 지정하세요."


class ConfigurationInvalid(UsageError):
    """`problems` is one line each: where in the file, what is wrong, and the nearest valid name."""

    english = "{path} is not valid:\n{problems}\nCorrect these and run `eval-pipeline check`."
    korean = "{path}에 잘못된 곳이 있습니다:\n{problems}\n고친 뒤 `eval-pipeline check`를 실행하세요."


class UnknownName(UsageError):
    """A name given on the command line or in a file that nothing has."""

    english = "There is no {kind} named {name!r}.{hint} Known: {known}."
    korean = "이름이 {name!r}인 {kind}이(가) 없습니다.{hint} 사용할 수 있는 이름: {known}."

    def __init__(self, *, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = nearest(name, names)
        super().__init__(
            kind=kind,
            name=name,
            known=", ".join(names[:LISTED_NAMES]) + (f", … ({len(names)})" if len(names) > LISTED_NAMES else "") or "-",
            hint=f" → {close!r}?" if close else "",
        )


class BackfillNeedsTarget(UsageError):
    english = "Say what to fill: --system NAME asks a system as it is now, --judge NAME judges stored responses. Known: {known}."
    korean = "무엇을 채울지 고르세요. --system 이름은 시스템에 지금 상태로 묻고, --judge 이름은 저장된 응답을 판정합니다. 사용할 수 있는 이름: {known}."


class ChoiceNeeded(UsageError):
    english = (
        "There are several {kind}s; say which with --{option} or `default_{option}` in evaluation.yaml. Known: {known}."
    )
    korean = "{kind}이(가) 여럿입니다. --{option} 또는 evaluation.yaml의 `default_{option}`로 고르세요. 사용할 수 있는 이름: {known}."

    def __init__(self, *, kind: str, known: str) -> None:
        super().__init__(kind=kind, option=kind, known=known)


class FileUnreadable(UsageError):
    english = "Cannot read {path}: {reason}. Check the path and its permissions."
    korean = "{path} 파일을 읽을 수 없습니다: {reason}. 경로와 권한을 확인하세요."


class DatasetInvalid(UsageError):
    """`problems` is one line each: file, line, field, what is wrong. All of them, not the first."""

    english = "{path} has {count} problem(s); nothing was written:\n{problems}"
    korean = "{path}에서 문제 {count}건을 찾았으며 아무것도 쓰지 않았습니다:\n{problems}"


class AnswerAmbiguous(DatasetInvalid):
    """`answer` is the reference in some tools and the system's response in others."""

    english = "`answer` may be a reference or a response (the first is {first!r}); nothing was written. Say which: {reference}, or {response}."
    korean = "`answer`는 기준 답변일 수도 응답일 수도 있어(첫 값: {first!r}) 아무것도 쓰지 않았습니다. 하나를 고르세요: 기준 답변이면 {reference}, 응답이면 {response}."


class DatasetNotFound(UsageError):
    english = "Dataset {name!r} has no version {version!r}. `eval-pipeline dataset log {name}` lists what there is."
    korean = (
        "데이터셋 {name!r}에 버전 {version!r}이(가) 없습니다. `eval-pipeline dataset log {name}`으로 목록을 보세요."
    )


class MessageRequired(UsageError):
    english = 'A dataset version needs a message that says why it changed. Add `--message "..."`.'
    korean = '데이터셋 버전에는 변경 이유가 필요합니다. `--message "..."`를 추가하세요.'


class TagExists(UsageError):
    english = "Tag {tag!r} of dataset {name!r} already names version {version}; tags do not move. Choose a new tag."
    korean = "데이터셋 {name!r}의 태그 {tag!r}은(는) 이미 버전 {version}을 가리키며 옮길 수 없습니다. 새 태그를 쓰세요."


class TagInvalid(UsageError):
    english = "{tag!r} cannot be a tag: letters, digits, Hangul, `.`, `_` and inner `-`, at most 64, and not `latest`."
    korean = "{tag!r}은(는) 태그가 될 수 없습니다. 글자·숫자·한글·`.`·`_`와 중간의 `-`로 64자까지이며 `latest`는 쓸 수 없습니다."


class PromptInvalid(UsageError):
    english = "Prompt {prompt} is not usable: {reason}. Released prompts do not change; add a new version instead."
    korean = "프롬프트 {prompt}을(를) 쓸 수 없습니다: {reason}. 배포된 프롬프트는 고치지 말고 새 버전을 추가하세요."


class NotWritable(UsageError):
    english = "Cannot write {path}: {reason}. Choose another folder or fix its permissions."
    korean = "{path}에 쓸 수 없습니다: {reason}. 다른 폴더를 고르거나 권한을 고치세요."


class TargetExists(UsageError):
    english = "{path} exists and may hold somebody's work. Choose another --out, or replace it with --force."
    korean = "{path} 파일이 이미 있으며 누군가의 작업이 들어 있을 수 있습니다. --out을 바꾸거나 --force로 덮어쓰세요."


class QueryFailed(UsageError):
    english = "The query failed: {reason}"
    korean = "질의가 실패했습니다: {reason}"


class NothingPublished(UsageError):
    english = "There is no published database at {path} yet. Run `eval-pipeline run` or `eval-pipeline demo` first."
    korean = (
        "{path}에 아직 게시된 데이터베이스가 없습니다. 먼저 `eval-pipeline run`이나 `eval-pipeline demo`를 실행하세요."
    )


class EvaluationNotFound(UsageError):
    english = "No evaluation matches {selector!r}. `eval-pipeline evaluations` lists them."
    korean = "{selector!r}에 맞는 평가가 없습니다. `eval-pipeline evaluations`로 목록을 보세요."


class LabelsInvalid(UsageError):
    english = "{path}: {count} label row(s) cannot be used:\n{problems}"
    korean = "{path}: 쓸 수 없는 라벨 행이 {count}건 있습니다:\n{problems}"


class SystemMisconfigured(UsageError):
    english = "System {system!r} cannot be asked: {reason}."
    korean = "시스템 {system!r}에 물어볼 수 없습니다: {reason}."


class ExtraMissing(UsageError):
    english = "{feature} needs an optional package. Install it with `pip install 'eval-pipeline[{extra}]'`."
    korean = "{feature} 기능에는 추가 패키지가 필요합니다. `pip install 'eval-pipeline[{extra}]'`로 설치하세요."


class SettingInvalid(UsageError):
    english = "{name}={value} is not usable. Set it to {allowed}."
    korean = "{name}={value} 값을 쓸 수 없습니다. 사용할 수 있는 값: {allowed}."


class JudgeMisconfigured(UsageError):
    english = "Judge {judge!r} cannot be used: {reason}."
    korean = "심판 {judge!r}을(를) 쓸 수 없습니다: {reason}."


class JudgeOfRecordGone(UsageError):
    english = "Judge {judge!r} is configured otherwise now than when it judged {evaluation} ({metrics}). Run again, then compare with the new evaluation."
    korean = "심판 {judge!r}의 설정이 {evaluation} 때와 달라졌습니다({metrics}). 다시 실행한 뒤 새 평가와 비교하세요."


class Refused(EvalPipelineError):
    """It could run, and must not: the result would mislead."""

    exit_code = 3


class SelfEvaluation(Refused):
    english = "Judge {judge!r} ({judge_model}) is the model inside system {system!r}; a model does not grade itself. Choose another judge."
    korean = "심판 {judge!r}({judge_model})은 시스템 {system!r} 안의 모델과 같습니다. 모델은 자신을 채점하지 않습니다. 다른 심판을 고르세요."


class FloatingJudge(Refused):
    english = "Judge {judge!r} names {model!r}, an alias that moves. Pin a dated snapshot, or set `allow_floating: true` to mark every result unpinned."
    korean = "심판 {judge!r}의 모델 {model!r}은 움직이는 별칭입니다. 날짜가 붙은 버전으로 고정하거나, 모든 결과에 unpinned 표시를 남기려면 `allow_floating: true`를 쓰세요."


class EmptyDataset(Refused):
    english = (
        "Dataset {name!r} has no items, so there is nothing to evaluate. Add items with `eval-pipeline dataset add`."
    )
    korean = "데이터셋 {name!r}에 항목이 없어 평가할 것이 없습니다. `eval-pipeline dataset add`로 항목을 추가하세요."


class NoParallelBaseline(Refused):
    english = "Judge {judge!r} cannot be accepted: it judged none of the responses that {old} judged. Run it over the stored responses first."
    korean = "심판 {judge!r}을(를) 승인할 수 없습니다. {old}이(가) 판정한 응답을 하나도 판정하지 않았습니다. 먼저 저장된 응답을 판정하게 하세요."


class Stopped(EvalPipelineError):
    """Operational and resumable: what was paid for is kept; the same command goes on from here."""

    exit_code = 5


class ProviderStopped(Stopped):
    english = "{endpoint} stopped the run: {reason}. Fix this, then run the same command again: answered questions are not asked twice."
    korean = "{endpoint}이(가) 실행을 멈췄습니다: {reason}. 해결한 뒤 같은 명령을 다시 실행하면 이미 받은 답은 다시 묻지 않습니다."


class JudgeIdentityMismatch(Stopped):
    english = "Judge {judge!r} declares {declared!r} but the endpoint answered as {returned!r}. Correct `model:` or declare the rewriting with `returns:`."
    korean = "심판 {judge!r}은(는) {declared!r}로 선언되었지만 엔드포인트는 {returned!r}로 답했습니다. `model:`을 고치거나 `returns:`로 바뀌는 이름을 선언하세요."


class BudgetReached(Stopped):
    english = "The limit {limit} was reached ({spent}). Results so far are partial and valid; raise the limit and run again to finish."
    korean = "한도 {limit}에 도달했습니다({spent}). 지금까지의 결과는 부분 결과이며 유효합니다. 한도를 올려 다시 실행하면 이어집니다."


class BatchWaiting(Stopped):
    english = "{count} question(s) to judge {judge!r} wait for a batch. `eval-pipeline batch poll` collects what has ended; then `eval-pipeline run --resume` goes on."
    korean = "심판 {judge!r}에게 보낸 질문 {count}개가 배치 결과를 기다립니다. `eval-pipeline batch poll`로 끝난 배치를 거둔 뒤 `eval-pipeline run --resume`으로 이어 가세요."


class Interrupted(Stopped):
    exit_code = 130
    english = "Interrupted. Answers received so far are kept; run the same command again to go on."
    korean = "중단되었습니다. 지금까지 받은 답은 보관되며, 같은 명령을 다시 실행하면 이어집니다."
