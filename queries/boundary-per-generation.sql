-- name: boundary-per-generation
-- purpose: both answers to a time in every generation, and the rows lost and sent twice
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: at TIMESTAMP  the time
WITH whole AS (
  SELECT generation FROM cache.generations WHERE dataset = $dataset AND partition = $partition AND problem IS NULL
),
visible AS (
  SELECT _generation, _generation_state, _hyp_ingest_seq AS seq, {time} AS time
  FROM raw.{dataset}
  WHERE _partition = $partition AND _referenced AND NOT _deleted AND _hyp_ingest_seq IS NOT NULL AND {time} IS NOT NULL
    AND _generation IN (SELECT generation FROM whole)
),
sides AS (
  SELECT _generation,
         max(seq) FILTER (WHERE time <= $at) AS tight_seq,
         min(seq) FILTER (WHERE time > $at) AS first_seq_after
  FROM visible
  GROUP BY _generation
),
answers AS (
  SELECT v._generation, v._generation_state, s.tight_seq, s.first_seq_after,
         max(v.seq) FILTER (WHERE s.first_seq_after IS NULL OR v.seq < s.first_seq_after) AS safe_seq
  FROM visible v JOIN sides s ON v._generation = s._generation
  GROUP BY v._generation, v._generation_state, s.tight_seq, s.first_seq_after
),
counted AS (
  SELECT a._generation, a.tight_seq, a.safe_seq, a.first_seq_after,
         count(*) FILTER (WHERE v.time > $at AND v.seq <= a.tight_seq) AS rows_lost_at_tight,
         count(*) FILTER (WHERE v.time <= $at AND v.seq > coalesce(a.safe_seq, 0)) AS rows_resent_at_safe
  FROM answers a JOIN visible v ON v._generation = a._generation
  GROUP BY a._generation, a.tight_seq, a.safe_seq, a.first_seq_after
)
-- Of a generation that cannot be read whole nothing is told but why.
SELECT g.generation, g.state, c.tight_seq, c.safe_seq, c.first_seq_after, c.rows_lost_at_tight, c.rows_resent_at_safe,
       g.problem
FROM cache.generations g LEFT JOIN counted c ON c._generation = g.generation
WHERE g.dataset = $dataset AND g.partition = $partition
ORDER BY g.generation
