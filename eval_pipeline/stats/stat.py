"""The one result type of every statistic.

Nothing is computed here: a `Stat` says what a number is, how sure it is and why it may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Status = Literal["ok", "low_precision", "fallback", "undefined"]
Sided = Literal["two", "one"]
Estimand = Literal["population", "fixed_set"]

_NUMBERS = ("value", "lower", "upper", "level", "p")


class NotANumberError(ValueError):
    """A statistic was about to carry NaN or infinity; the caller must return an undefined `Stat` instead."""

    def __init__(self, name: str, field_name: str, value: object) -> None:
        super().__init__(f"{name}.{field_name} is {value!r}; a statistic that cannot be computed is `undefined`.")


def plain(value: Any, name: str = "stat", field_name: str = "details") -> Any:
    """Return `value` as plain Python (no numpy scalars or arrays); NaN and infinity raise `NotANumberError`."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item, name, f"{field_name}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, name, field_name) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), name, field_name)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotANumberError(name, field_name, value)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One statistic with its uncertainty.

    Attributes:
        value: The estimate, or None when `status` is `undefined`. None is not zero and not a pass.
        lower: Lower confidence limit, or None where there is none.
        upper: Upper confidence limit, or None where there is none.
        level: Confidence level of the limits.
        sided: `two`: the limits are one interval at `level`. `one`: each limit alone holds at `level`.
        p: p value, where the statistic is a test.
        n: Observations used. n_dropped: observations left out because a part of them is missing.
        reason: Why the status is not `ok`; a machine-readable word.
        estimand: `fixed_set` (this golden set) or `population` (questions like these).
        details: Further numbers by name; seed, resamples and bit generator of a Monte Carlo result are here.

    Raises:
        NotANumberError: NaN or infinity in any number.
        ValueError: A value without being defined, limits in the wrong order, or a status without its reason.
    """

    name: str
    value: float | None
    n: int
    lower: float | None = None
    upper: float | None = None
    level: float | None = None
    sided: Sided | None = None
    p: float | None = None
    method: str = ""
    n_dropped: int = 0
    status: Status = "ok"
    reason: str | None = None
    estimand: Estimand | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None:
                number = float(number)
                if not math.isfinite(number):
                    raise NotANumberError(self.name, name, number)
                object.__setattr__(self, name, number)
        object.__setattr__(self, "n", int(self.n))
        object.__setattr__(self, "n_dropped", int(self.n_dropped))
        object.__setattr__(self, "details", plain(self.details, self.name))
        if (self.value is None) != (self.status == "undefined"):
            raise ValueError(f"{self.name}: value {self.value} and status {self.status} contradict each other.")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"{self.name}: status {self.status} needs a reason.")
        if self.lower is not None and self.upper is not None and self.lower > self.upper + 1e-12:
            raise ValueError(f"{self.name}: lower limit {self.lower} is above upper limit {self.upper}.")

    @property
    def is_defined(self) -> bool:
        """Whether there is a value; a gate that reads an undefined statistic blocks."""
        return self.value is not None

    def to_dict(self) -> dict[str, Any]:
        """The flat JSON object of the machine-readable output."""
        out: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            out[item.name] = list(value) if isinstance(value, tuple) else value
        return out


def undefined(name: str, reason: str, *, n: int = 0, n_dropped: int = 0, **rest: Any) -> Stat:
    """A typed "cannot be said": no value, with the reason."""
    return Stat(name=name, value=None, n=n, n_dropped=n_dropped, status="undefined", reason=reason, **rest)
