-- name: sink-lag
-- purpose: how far behind each sink is: rows of the live generations above its watermark, and the oldest of them
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: time COLUMN = message_created_at  the column that holds a row's time
WITH visible AS (
  SELECT _partition AS partition, _hyp_ingest_seq AS seq, {time} AS time
  FROM raw.{dataset}
  WHERE _generation_state = 'live' AND _referenced AND NOT _deleted AND _hyp_ingest_seq IS NOT NULL
)
-- A watermark that cannot be read has no seq: the daemon then exports everything, so how far behind it is, is not known.
SELECT w.plugin, w.instance, w.partition, w.seq AS watermark_seq, max(v.seq) AS newest_seq,
       CASE WHEN w.seq IS NOT NULL THEN count(*) FILTER (WHERE v.seq > w.seq) END AS rows_behind,
       min(v.time) FILTER (WHERE v.seq > w.seq) AS oldest_unsent_time,
       w.exported_row_count, w.updated_at
FROM cache.watermarks w LEFT JOIN visible v USING (partition)
WHERE w.dataset = $dataset
GROUP BY w.plugin, w.instance, w.partition, w.seq, w.exported_row_count, w.updated_at
ORDER BY w.plugin, w.instance, w.partition
