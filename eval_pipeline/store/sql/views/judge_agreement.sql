-- How often the two templates of a dual metric agree, by evaluation and metric: self-consistency, not truth
-- @pair_count: Items with both grades
-- @agreement_share: Share of them with equal grades; null when no item has both
-- @mean_disagreement: Mean absolute difference of the normalised grades; null when no item has both
-- @single_count: Items resting on one of two grades
select e.started_at, e.dataset, e.system, e.judge, s.evaluation_id, s.metric,
       count(*) filter (s.disagreement is not null) as pair_count,
       avg((s.disagreement = 0)::int) filter (s.disagreement is not null) as agreement_share,
       avg(s.disagreement) as mean_disagreement,
       count(*) filter (s.status = 'scored_single') as single_count
from scores s join evaluations e using (evaluation_id)
where s.grade_1 is not null or s.grade_2 is not null
group by e.started_at, e.dataset, e.system, e.judge, s.evaluation_id, s.metric
order by e.started_at, s.metric
