-- name: sink-lag
-- purpose: how far behind each sink is: rows above its watermark, and rows at or below it beside what it exported
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: time COLUMN = message_created_at  the column that holds a row's time
WITH rows AS (
  SELECT r._partition AS partition, r._hyp_ingest_seq AS seq, r.{time} AS time,
         r._generation = p.live_generation AND NOT r._deleted AS visible
  FROM complete.{dataset} r JOIN cache.partitions p ON p.dataset = $dataset AND p.partition = r._partition
)
-- A watermark that cannot be read has no seq: the daemon then exports everything, so how far behind it is, is not known.
SELECT w.plugin, w.instance, w.partition, w.seq AS watermark_seq, max(r.seq) FILTER (WHERE r.visible) AS newest_seq,
       CASE WHEN w.seq IS NOT NULL THEN count(*) FILTER (WHERE r.seq > w.seq AND r.visible) END AS rows_behind,
       min(r.time) FILTER (WHERE r.seq > w.seq AND r.visible) AS oldest_unsent_time,
       CASE WHEN w.seq IS NOT NULL THEN count(*) FILTER (WHERE r.seq <= w.seq) END AS rows_at_or_below,
       w.exported_row_count, w.updated_at
FROM cache.watermarks w LEFT JOIN rows r USING (partition)
WHERE w.dataset = $dataset
GROUP BY w.plugin, w.instance, w.partition, w.seq, w.exported_row_count, w.updated_at
ORDER BY w.plugin, w.instance, w.partition
