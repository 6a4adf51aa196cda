"""The command line: argument shapes and printing, no logic. One module per group of verbs.

Nothing heavier than typer and rich is imported before a verb runs, so `--help` and `query` stay quick.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of `eval-pipeline`: turns the error family into one message and its exit code, never a traceback."""
    from typer import TyperException

    from eval_pipeline.cli.app import command
    from eval_pipeline.cli.console import fail
    from eval_pipeline.errors import CommandInvalid, Defect, EvalPipelineError, Interrupted, NotWritable

    try:
        sys.exit(command()(standalone_mode=False))
    except TyperException as error:
        reason, context = error.format_message().strip(), getattr(error, "ctx", None)
        if not reason:  # no verb at all: the help was shown instead
            sys.exit(2)
        sys.exit(fail(CommandInvalid(reason=reason, command=context.command_path if context else "eval-pipeline")))
    except EvalPipelineError as error:
        sys.exit(fail(error))
    except KeyboardInterrupt:
        sys.exit(fail(Interrupted()))
    except BrokenPipeError:
        sys.exit(141)
    except Exception as error:
        if isinstance(error, OSError) and error.filename:
            sys.exit(fail(NotWritable(path=error.filename, reason=error.strerror or str(error))))
        if os.environ.get("EVAL_TRACEBACK"):
            raise
        sys.exit(fail(Defect(kind=type(error).__name__, detail=str(error)[:500])))
