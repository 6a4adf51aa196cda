"""`evaluation.yaml` as frozen models: shape and validation only.

Reading environment variables happens in `cli/` and `defs/`; a `${NAME}` in the file stays text until then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from eval_pipeline.errors import ChoiceNeeded, ConfigurationInvalid, FileUnreadable, UnknownName, nearest
from eval_pipeline.vocabulary import Decision, Language, NoClaimsPolicy, NoResponsePolicy, Policy

CONFIG_NAME = "evaluation.yaml"
Share = Annotated[float, Field(ge=0, le=1)]
CANARY_LEAST = 50


def _says_something(size: int) -> int:
    if 0 < size < CANARY_LEAST:
        raise ValueError(f"fewer than {CANARY_LEAST} frozen items show nothing; 0 turns the canary off")
    return size


CanarySize = Annotated[int, Field(ge=0), AfterValidator(_says_something)]
"""Frozen items that a judge on an endpoint is asked anew each night. The default is above 50, so that some may be lost."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9가-힣][A-Za-z0-9가-힣_.-]{0,63}$")]


class Section(BaseModel):
    """A part of the file: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StratumConfig(Section):
    """Declared minimum size and weight of one stratum."""

    minimum: int = Field(default=0, ge=0)
    weight: float | None = Field(default=None, ge=0)


class DatasetConfig(Section):
    """One golden dataset."""

    path: str
    tag: str = "latest"
    strata: Mapping[str, StratumConfig] = {}
    stale_after_days: int | None = Field(default=None, ge=1)


class ReleaseConfig(Section):
    """A release read from a URL: JSONPath into its JSON body."""

    url: str
    path: str = "$"


class RequestConfig(Section):
    """HTTP request template of a system. `{{ user_input }}` and `{{ item_id }}` are filled in, JSON-escaped."""

    method: Literal["GET", "POST", "PUT"] = "POST"
    url: str
    headers: Mapping[str, str] = {}
    json_: Any = Field(default=None, alias="json")
    params: Mapping[str, str] = {}


class ResponseMapping(Section):
    """JSONPaths from a system's reply to our fields."""

    response: str = "$.response"
    retrieved_contexts: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None


class SystemConfig(Section):
    """One system under evaluation."""

    source: Literal["recorded", "http", "python", "command", "openai"]
    release: str | ReleaseConfig = "unversioned"
    models: tuple[str, ...] = ()
    responses: Literal["refresh", "reuse"] = "refresh"
    path: str | None = None
    request: RequestConfig | None = None
    response: ResponseMapping = ResponseMapping()
    function: str | None = None
    command: tuple[str, ...] | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    messages: tuple[Mapping[str, str], ...] = ()
    timeout_seconds: float = Field(default=60, gt=0)
    max_in_flight: int = Field(default=8, ge=1)
    retries: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _has_what_its_source_needs(self) -> SystemConfig:
        needed = {"recorded": "path", "http": "request", "python": "function", "command": "command", "openai": "model"}
        if getattr(self, needed[self.source]) is None:
            raise ValueError(f"source {self.source!r} needs `{needed[self.source]}`")
        return self


class JudgeConfig(Section):
    """One judge. `embedded` is the built-in lexical baseline and needs nothing else; `recorded` and `nli` need `path`."""

    provider: Literal["openai", "embedded", "recorded", "nli"] = "openai"
    endpoint: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    request_model: str | None = None
    model: str = "overlap_judge"
    revision: str = ""
    returns: str | None = None
    parameters: Mapping[str, Any] = {}
    path: str | None = None
    allow_floating: bool = False
    batch: bool = False
    api: Literal["chat_completions", "responses"] = "chat_completions"
    max_in_flight: int = Field(default=32, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    timeout_seconds: float = Field(default=60, gt=0)
    transport_retries: int = Field(default=4, ge=0)
    attempts: int = Field(default=3, ge=1)

    @model_validator(mode="after")
    def _asks_over_a_network_what_needs_one(self) -> JudgeConfig:
        if self.batch and not self.has_endpoint:
            raise ValueError(f"`batch` needs an endpoint; provider {self.provider!r} has none")
        return self

    @property
    def has_endpoint(self) -> bool:
        """Whether questions go to a server; the others answer in this process."""
        return self.provider not in {"embedded", "recorded", "nli"}


class EmbeddingConfig(Section):
    """Where similarities come from: character n-grams, a local sentence encoder (`local`), or an endpoint."""

    provider: Literal["embedded", "local", "openai"] = "embedded"
    model: str = "char-ngram"
    endpoint: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    max_in_flight: int = Field(default=16, ge=1)
    timeout_seconds: float = Field(default=60, gt=0)


def _empty_is_mapping(value: object) -> object:
    return {} if value is None else value


class MetricConfig(BaseModel):
    """One metric instance. Keys beyond these are the options of the metric's own declaration."""

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: str | None = None
    gate: bool = True
    no_response: NoResponsePolicy = NoResponsePolicy.ZERO
    no_claims: NoClaimsPolicy = NoClaimsPolicy.EXCLUDE
    catastrophic: Share = 0.0
    passes_from: Share | None = None
    judge: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What the metric's declaration takes, `kind` included when given."""
        return dict(self.model_extra or {}) | ({"kind": self.kind} if self.kind else {})

    @property
    def chosen_policies(self) -> dict[str, str]:
        """What items without response or claims count, where it is not the default: such a choice moves scores."""
        return {
            name: str(getattr(self, name))
            for name in ("no_response", "no_claims")
            if getattr(self, name) != type(self).model_fields[name].default
        }


class CalibrationConfig(Section):
    """When a judge counts as tested."""

    bar: float = Field(default=0.7, ge=0, lt=1)
    minimum_labels: int = Field(default=50, ge=50)
    minimum_off_modal: int = Field(default=10, ge=10)


class GateMetricConfig(Section):
    """What the gate demands of one metric."""

    floor: Share | None = None
    cvar10_floor: Share | None = None
    catastrophic_cap: Share | None = None
    margin: float = Field(default=0.03, gt=0, le=1)
    minimum_effect: float = Field(default=0.01, ge=0, le=1)


class PolicyConfig(Section):
    """How one occasion reads the decision."""

    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    fail_on: tuple[Decision, ...] = (Decision.FAIL, Decision.BLOCKED)
    require_calibration: Literal["provisional", "pass"] = "provisional"
    enforce: bool = True


def _default_policies() -> dict[Policy, PolicyConfig]:
    return {
        Policy.PR: PolicyConfig(alpha=0.05),
        Policy.NIGHTLY: PolicyConfig(alpha=0.01),
        Policy.RELEASE: PolicyConfig(
            fail_on=(Decision.FAIL, Decision.BLOCKED, Decision.INCONCLUSIVE), require_calibration="pass"
        ),
    }


class GateConfig(Section):
    """The gate."""

    baseline: str = "main"
    window: int = Field(default=7, ge=1)
    max_invalid_share: Share = 0.02
    max_failed_response_share: Share = 0.02
    metrics: Mapping[str, GateMetricConfig] = {}
    policies: Mapping[Policy, PolicyConfig] = Field(default_factory=_default_policies)

    def policy(self, policy: Policy) -> PolicyConfig:
        return self.policies.get(policy, _default_policies()[policy])


class ScheduleConfig(Section):
    """The nightly run."""

    cron: str = "0 2 * * *"
    timezone: str = "UTC"
    policy: Policy = Policy.NIGHTLY


class AlertConfig(Section):
    """Where alerts go; the URL itself comes from the named environment variable only."""

    webhook_env: str
    when: tuple[Literal["FAIL", "BLOCKED", "INCONCLUSIVE", "error", "missed"], ...] = (
        "FAIL",
        "BLOCKED",
        "error",
        "missed",
    )


Severity = Literal["warn", "error"]


class CheckConfig(Section):
    """How loud one asset check is when it does not pass; only `error` raises an alert."""

    severity: Severity = "error"


class JudgeAgreementConfig(CheckConfig):
    """The least that the two templates of a metric must agree."""

    severity: Severity = "warn"
    minimum: float = Field(default=0.4, ge=-1, le=1)


class CalibrationFreshnessConfig(CheckConfig):
    """How old the newest human label may be."""

    maximum_label_age_days: int = Field(default=180, ge=1)


class ChecksConfig(Section):
    """The asset checks; what is not here keeps its severity."""

    invalid_grade_rate: CheckConfig = CheckConfig()
    bottom_decile: CheckConfig = CheckConfig()
    judge_agreement: JudgeAgreementConfig = JudgeAgreementConfig()
    canary_drift: CheckConfig = CheckConfig()
    calibration_freshness: CalibrationFreshnessConfig = CalibrationFreshnessConfig()
    label_provenance: CheckConfig = CheckConfig(severity="warn")
    cost_against_budget: CheckConfig = CheckConfig(severity="warn")

    def severity(self, check: str) -> Severity:
        """Of one check by name; those that cannot be softened are errors."""
        found = getattr(self, check, None)
        return found.severity if isinstance(found, CheckConfig) else "error"


class LimitsConfig(Section):
    """Stops that keep what was paid for."""

    max_cost_usd: float | None = Field(default=None, ge=0)
    max_calls: int | None = Field(default=None, ge=0)


CANNOT_MOVE_A_SCORE = {"max_in_flight", "timeout_seconds", "api_key_env", "requests_per_minute", "tokens_per_minute",
                       "transport_retries", "batch", "retries", "responses", "headers"}  # fmt: skip


class EvaluationConfig(Section):
    """The whole file."""

    version: Literal[1] = 1
    language: Language = Language.EN
    datasets: Mapping[Name, DatasetConfig]
    systems: Mapping[Name, SystemConfig]
    judges: Mapping[Name, JudgeConfig]
    default_judge: str | None = None
    default_system: str | None = None
    default_dataset: str | None = None
    embedding: EmbeddingConfig = EmbeddingConfig()
    metrics: Annotated[Mapping[Name, Annotated[MetricConfig, BeforeValidator(_empty_is_mapping)]], Field(min_length=1)]
    metric_folders: tuple[str, ...] = ()
    calibration: CalibrationConfig = CalibrationConfig()
    gate: GateConfig = GateConfig()
    schedule: ScheduleConfig | None = None
    alerts: AlertConfig | None = None
    checks: ChecksConfig = ChecksConfig()
    limits: LimitsConfig = LimitsConfig()
    canary_size: CanarySize = 60

    @model_validator(mode="after")
    def _names_exist(self) -> EvaluationConfig:
        pairs = [("default_judge", self.default_judge, self.judges), ("default_system", self.default_system, self.systems),
                 ("default_dataset", self.default_dataset, self.datasets)]  # fmt: skip
        pairs += [(f"metrics.{name}.judge", metric.judge, self.judges) for name, metric in self.metrics.items()]
        pairs += [("gate.metrics", name, self.metrics) for name in self.gate.metrics]
        for where, name, known in pairs:
            if name is not None and name not in known:
                raise ValueError(f"{where}: no {name!r} here; known: {', '.join(sorted(known)) or '-'}")
        return self

    def dataset_name(self, name: str | None = None) -> str:
        return _chosen("dataset", name or self.default_dataset, self.datasets)

    def system_name(self, name: str | None = None) -> str:
        return _chosen("system", name or self.default_system, self.systems)

    def judge_name(self, name: str | None = None) -> str:
        return _chosen("judge", name or self.default_judge, self.judges)

    def system_sha256(self, system: str) -> str:
        """Hash of what one system is, apart from what cannot move a score."""
        return _sha256(self.systems[system].model_dump(mode="json", exclude=CANNOT_MOVE_A_SCORE))

    def scoring_sha256(self, system: str, judge: str) -> str:
        """Hash of everything here that can move a score; limits, schedule, alerts, gate and concurrency cannot."""
        parts = {
            "system": self.systems[system].model_dump(mode="json", exclude=CANNOT_MOVE_A_SCORE),
            "judge": self.judges[judge].model_dump(mode="json", exclude=CANNOT_MOVE_A_SCORE),
            "embedding": self.embedding.model_dump(mode="json", exclude=CANNOT_MOVE_A_SCORE),
            "metrics": {
                name: metric.model_dump(mode="json", exclude={"gate", "passes_from"})
                for name, metric in self.metrics.items()
            },
        }
        return _sha256(parts)


def _sha256(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _chosen(kind: str, name: str | None, known: Mapping[str, object]) -> str:
    if name is None and len(known) == 1:
        return next(iter(known))
    if name is None:
        raise ChoiceNeeded(kind=kind, known=", ".join(sorted(known)))
    if name not in known:
        raise UnknownName(kind=kind, name=name, known=known)
    return name


def load_config(path: Path) -> EvaluationConfig:
    """Reads and validates one `evaluation.yaml`.

    Raises:
        FileUnreadable: the file cannot be read.
        ConfigurationInvalid: all problems at once, each with its place and, for an unknown key, the nearest name.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(path=path.name, reason=str(getattr(error, "strerror", None) or error)) from error
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationInvalid(path=path.name, problems=f"  not YAML: {error}") from error
    if not isinstance(raw, dict):
        raise ConfigurationInvalid(
            path=path.name, problems="  the file must be a mapping of keys (version, datasets, ...)"
        )
    try:
        return EvaluationConfig.model_validate(raw)
    except ValidationError as error:
        raise ConfigurationInvalid(path=path.name, problems="\n".join(_problems(error))) from error


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = nearest(str(problem["loc"][-1]), _known_keys(problem["loc"][:-1]))
            yield f"  {place}: unknown key{f'; did you mean {close!r}?' if close else ''}"
        else:
            yield f"  {place or 'file'}: {problem['msg'].removeprefix('Value error, ')}"


def _known_keys(place: tuple[int | str, ...]) -> list[str]:
    """Keys of the section at a place in the file, found by walking the model's annotations."""
    section: Any = EvaluationConfig
    for part in place:
        field = section.model_fields.get(part) if _is_section(section) else None
        section = field.annotation if field else section
        section = next((found for found in _sections(section)), section)
    return [field.alias or name for name, field in section.model_fields.items()] if _is_section(section) else []


def _is_section(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _sections(annotation: Any) -> Iterator[Any]:
    if _is_section(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors; kept in `docs/evaluation.schema.json`."""
    return EvaluationConfig.model_json_schema(by_alias=True)
