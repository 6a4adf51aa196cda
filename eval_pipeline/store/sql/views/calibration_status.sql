-- The newest calibration of each judge on each metric, from complete evaluations and stand-alone ones
select c.judge, c.judge_model, c.metric, c.label_provenance, c.pair_count, c.dropped_count, c.spearman_rho, c.rho_lower,
       c.rho_upper, c.rho_status, c.bar, c.decision, c.is_provisional, c.labels_needed, c.bias, c.reason, c.attempt,
       c.calibrated_at, c.judge_key, c.evaluation_id
from calibrations c
where c.stratum = 'all' and (c.evaluation_id is null or c.evaluation_id in (select evaluation_id from evaluations))
qualify row_number() over (partition by c.judge_key, c.metric order by c.calibrated_at desc, c.attempt desc) = 1
order by c.judge, c.metric
