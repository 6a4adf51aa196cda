-- The bottom 10 % of each metric and evaluation with texts and the judge's raw replies, invalid ones first
-- @replies: The judge's raw replies, in template order
select s.evaluation_id, s.metric, s.item_id, s.stratum, s.status, s.value, g.user_input, g.reference, r.response,
       r.retrieved_contexts,
       (select list(v.reply order by v.template_id, v.part_index) from verdicts v
        where v.evaluation_id = s.evaluation_id and v.metric = s.metric and v.item_id = s.item_id) as replies
from summaries m
join evaluations e using (evaluation_id)
join scores s on s.evaluation_id = m.evaluation_id and s.metric = m.metric and list_contains(m.worst_item_ids, s.item_id)
join golden_items g on g.dataset = e.dataset and g.dataset_version = e.dataset_version and g.item_id = s.item_id
join responses r on r.evaluation_id = s.evaluation_id and r.item_id = s.item_id
where m.stratum = 'all'
order by s.evaluation_id, s.metric, s.value nulls first, s.item_id
