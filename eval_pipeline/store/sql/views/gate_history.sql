-- The gate's decision on each evaluation, oldest first
select e.started_at, e.dataset, e.system, e.system_release, e.judge, g.evaluation_id, g.policy, g.verdict, g.evidence
from gate_decisions g join evaluations e using (evaluation_id)
where g.rule = 'decision'
order by e.started_at
