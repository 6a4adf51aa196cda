"""Runs `eval-pipeline run` and kills its own process at one moment of one stage: `python killed_run.py STAGE MOMENT [OPTION ...]`.

Moments: `entry`, before the stage did anything; `midway`, while its file is written and not yet in its place; `asking`,
after some replies were paid for; `end`, when the stage is done and Dagster does not know it yet.
"""

import os
import signal
import sys

from eval_pipeline.cli import main
from eval_pipeline.evaluation import publication
from eval_pipeline.evaluation.steps import Evaluation
from eval_pipeline.llm.ledgered_chat import LedgeredChat

ASKED = 20
HOMES = {"results": (publication, "publish"), "report": (publication, "write_report")}


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_some_replies():
    reply, paid = LedgeredChat.reply, []

    async def counted(self, request):
        found = await reply(self, request)
        if not found.is_cached:
            paid.append(found)
        if len(paid) == ASKED:
            die()
        return found

    LedgeredChat.reply = counted


def arm(stage, moment):
    home, name = HOMES.get(stage, (Evaluation, stage))
    whole = getattr(home, name)

    def stepped(*arguments, **options):
        if moment == "entry":
            die()
        if moment == "midway":
            os.replace = die
        if moment == "asking":
            die_after_some_replies()
        done = whole(*arguments, **options)
        die()
        return done

    setattr(home, name, stepped)


if __name__ == "__main__":
    arm(*sys.argv[1:3])
    sys.argv = ["eval-pipeline", "run", *sys.argv[3:]]
    main()
