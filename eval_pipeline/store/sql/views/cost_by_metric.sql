-- Questions, calls, tokens and cost by evaluation and metric; cost is null as soon as one price is unknown
-- @question_count: Questions asked
-- @call_count: Requests that were answered now
-- @cached_count: Questions answered by the ledger
select v.evaluation_id, v.metric,
       count(*) as question_count,
       sum(case when v.is_cached then 0 else v.attempt_count end) as call_count,
       count(*) filter (v.is_cached) as cached_count,
       sum(v.input_tokens) as input_tokens, sum(v.output_tokens) as output_tokens,
       case when count(*) filter (v.cost_usd is null) = 0 then sum(v.cost_usd) end as cost_usd
from verdicts v join evaluations e using (evaluation_id)
group by all order by all
