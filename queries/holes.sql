-- name: holes
-- purpose: ranges of seqs that no generation of a partition has, and which of its dataset's partitions have them
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition TEXT = source=claude  the partition's path
-- param: from BIGINT = 1  first seq
-- param: to BIGINT  last seq
WITH seqs AS (
  SELECT _hyp_ingest_seq AS seq, nullif(_partition, $partition) AS elsewhere
  FROM complete.{dataset}
  WHERE _hyp_ingest_seq BETWEEN $from AND $to
  UNION ALL SELECT $from - 1, NULL
),
others AS (
  SELECT elsewhere, before
  FROM (SELECT *, max(CASE WHEN elsewhere IS NULL THEN seq END) OVER (ORDER BY seq) AS before FROM seqs)
  WHERE elsewhere IS NOT NULL
),
holes AS (
  SELECT before, coalesce(after - 1, $to) AS last
  FROM (SELECT seq AS before, lead(seq) OVER (ORDER BY seq) AS after FROM seqs WHERE elsewhere IS NULL)
)
-- One counter numbers the rows of all datasets: what is not in this dataset may be in another.
SELECT h.before + 1 AS from_seq, h.last AS to_seq, h.last - h.before AS seqs,
       count(o.elsewhere) AS in_other_partitions,
       h.last - h.before - count(o.elsewhere) AS not_in_dataset,
       string_agg(DISTINCT o.elsewhere, ', ') AS partitions
FROM holes h LEFT JOIN others o ON o.before = h.before
WHERE h.last > h.before
GROUP BY h.before, h.last
ORDER BY from_seq
