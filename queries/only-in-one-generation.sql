-- name: only-in-one-generation
-- purpose: rows with a seq visible in one generation and not in another, and whether the other one has them as deleted
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: has GENERATION  the generation that has them
-- param: lacks GENERATION  the generation that lacks them
WITH other AS (
  SELECT _hyp_ingest_seq AS seq, min(CAST(known(_deleted) AS INT)) = 1 AS deleted
  FROM raw.{dataset}
  WHERE _partition = $partition AND _generation = $lacks AND known(_referenced)
  GROUP BY _hyp_ingest_seq
)
SELECT a._hyp_ingest_seq, a.{time}, a._file, a._pos, other.deleted IS NOT NULL AS deleted_there
FROM raw.{dataset} a LEFT JOIN other ON other.seq = a._hyp_ingest_seq
WHERE a._partition = $partition AND a._generation = $has AND known(a._referenced) AND NOT known(a._deleted)
  AND a._hyp_ingest_seq IS NOT NULL AND coalesce(other.deleted, true)
ORDER BY a._hyp_ingest_seq
