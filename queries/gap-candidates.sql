-- name: gap-candidates
-- purpose: where a sink that exported so many rows must have stopped: the row of that rank, and the rows after it
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: exported BIGINT  the watermark's exported row count
-- param: watermark BIGINT  the watermark's seq
WITH ranked AS (
  SELECT _partition, _hyp_ingest_seq AS seq, {time} AS time,
         row_number() OVER (PARTITION BY _partition ORDER BY _hyp_ingest_seq) AS rank
  FROM complete.{dataset}
  WHERE _partition = $partition AND _hyp_ingest_seq IS NOT NULL
)
SELECT _partition,
       max(seq) FILTER (WHERE rank = $exported) AS boundary_seq,
       max(time) FILTER (WHERE rank = $exported) AS boundary_time,
       min(seq) FILTER (WHERE rank > $exported) AS next_seq,
       count(*) FILTER (WHERE seq <= $watermark) AS rows_at_or_below,
       count(*) FILTER (WHERE seq <= $watermark AND rank > $exported) AS suspected_unsent_rows
FROM ranked
GROUP BY _partition
ORDER BY _partition
