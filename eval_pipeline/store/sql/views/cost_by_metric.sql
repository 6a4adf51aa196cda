-- Questions, calls, tokens and cost by evaluation and metric
-- @question_count: Questions put to the judge or found in the ledger
-- @call_count: Requests sent in the evaluation's last try, repeated ones included
-- @cached_count: Questions answered by the ledger
-- @input_tokens: Prompt tokens of questions whose tokens are known, cached ones included; null when none is
-- @output_tokens: Completion tokens of questions whose tokens are known; null when none is
-- @cost_usd: Cost of the calls of the evaluation's last try; null as soon as one price is unknown
select e.started_at, e.dataset, e.system, e.judge, v.evaluation_id, v.metric,
       count(*) filter (v.is_cached or v.attempt_count > 0) as question_count,
       sum(v.call_count)::bigint as call_count,
       count(*) filter (v.is_cached) as cached_count,
       sum(v.input_tokens)::bigint as input_tokens,
       sum(v.output_tokens)::bigint as output_tokens,
       case when count(*) filter (not v.is_cached and v.attempt_count > 0 and v.cost_usd is null) = 0
            then coalesce(sum(v.cost_usd) filter (not v.is_cached and v.attempt_count > 0), 0) end as cost_usd
from verdicts v join evaluations e using (evaluation_id)
group by e.started_at, e.dataset, e.system, e.judge, v.evaluation_id, v.metric
order by e.started_at, v.metric
