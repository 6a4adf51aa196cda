-- The bottom 10 % of each metric and evaluation with texts and the judge's raw replies, invalid ones first
-- @value: In [0, 1]; null means unknown or undefined, never zero
-- @replies: The judge's raw replies, in the order of template, part and sample; null where it gave none
-- @outcomes: Outcome of each of these questions in the same order
with bottom as (
    select m.evaluation_id, m.metric, unnest(m.worst_item_ids) as item_id from summaries m where m.stratum = 'all'
), asked as (
    select v.evaluation_id, v.metric, v.item_id,
           list(v.reply order by v.template_id, v.part_source, v.part_index, v.sample_index) as replies,
           list(v.outcome order by v.template_id, v.part_source, v.part_index, v.sample_index) as outcomes
    from verdicts v semi join bottom b using (evaluation_id, metric, item_id)
    group by v.evaluation_id, v.metric, v.item_id
)
select e.started_at, e.dataset, e.dataset_tag, e.system, e.system_release, e.judge, s.evaluation_id, s.metric, s.item_id,
       s.stratum, s.status, s.value, s.lower, s.upper, g.user_input, g.reference, r.response, r.retrieved_contexts, r.error,
       a.replies, a.outcomes
from bottom b
join evaluations e using (evaluation_id)
join scores s on s.evaluation_id = b.evaluation_id and s.metric = b.metric and s.item_id = b.item_id
left join golden_items g on g.dataset = e.dataset and g.dataset_version = e.dataset_version and g.item_id = s.item_id
left join responses r on r.evaluation_id = s.evaluation_id and r.item_id = s.item_id
left join asked a on a.evaluation_id = s.evaluation_id and a.metric = s.metric and a.item_id = s.item_id
order by e.started_at, s.metric, s.value nulls first, s.item_id
