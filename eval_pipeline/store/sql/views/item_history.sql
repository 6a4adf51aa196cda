-- One item's score on one metric over all evaluations, oldest first
select e.started_at, e.dataset, e.dataset_tag, e.system, e.system_release, e.judge, s.item_id, s.metric, s.status, s.value,
       s.lower, s.upper, s.evaluation_id
from scores s join evaluations e using (evaluation_id)
order by s.item_id, s.metric, e.started_at
