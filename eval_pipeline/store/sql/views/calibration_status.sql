-- The newest calibration of each judge on each metric
select c.judge, c.judge_model, c.metric, c.label_provenance, c.pair_count, c.dropped_count, c.spearman_rho, c.rho_lower,
       c.rho_upper, c.bar, c.decision, c.is_provisional, c.labels_needed, c.bias, c.reason, c.calibrated_at
from calibrations c
where c.stratum = 'all'
qualify row_number() over (partition by c.judge_key, c.metric order by c.calibrated_at desc) = 1
order by c.judge, c.metric
