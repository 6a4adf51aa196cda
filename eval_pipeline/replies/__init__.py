"""The strict reader of judges' replies: what counts as a grade, a list of claims, a generated question.

Nothing here guesses: no digit scans, no first match, no rounding, no clamping. It never sees the prompt. A reply may be
hostile or huge, so every step is linear in its length.
"""

from eval_pipeline.replies.expectation import expected_grade
from eval_pipeline.replies.generated import parse_claims, parse_generated_question
from eval_pipeline.replies.grades import CODE_FIELDS, GRADE_FIELDS, ParsedReply, parse_grade

__all__ = [
    "CODE_FIELDS",
    "GRADE_FIELDS",
    "ParsedReply",
    "expected_grade",
    "parse_claims",
    "parse_generated_question",
    "parse_grade",
]
