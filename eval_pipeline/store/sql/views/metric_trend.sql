-- Every metric over every evaluation and stratum, oldest first: the numbers that `run` prints
select e.started_at, e.dataset, e.dataset_tag, e.system, e.system_release, e.judge, e.is_partial, s.*
from summaries s join evaluations e using (evaluation_id)
order by e.started_at, s.metric, s.stratum
