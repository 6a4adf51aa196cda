-- Scores of the newest complete evaluation of each dataset and system
select e.dataset, e.system, e.system_release, e.judge, s.*
from scores s join evaluations e using (evaluation_id)
where e.evaluation_id in (
    select arg_max(evaluation_id, started_at) from evaluations where not is_partial group by dataset, system
)
