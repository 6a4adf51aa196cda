-- Questions without a usable reply, with what the judge said
select e.started_at, e.dataset, e.system, e.judge, v.evaluation_id, v.metric, v.item_id, v.part_source, v.part_index,
       v.template_id, v.sample_index, v.outcome, v.attempt_count, v.attempt_outcomes, v.reply, v.detail, v.judge_model
from verdicts v join evaluations e using (evaluation_id)
where v.outcome not in ('graded', 'skipped')
order by e.started_at, v.metric, v.item_id
