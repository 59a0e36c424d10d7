-- name: sink-lag
-- purpose: how far behind each sink is: rows above its watermark, and rows at or below it beside what it exported
WITH seqs AS (
  SELECT s.dataset, s.partition, s.seq, s.time,
         -- Only of the live generation it must be known what is deleted.
         NOT known(CASE WHEN s.generation = p.live_generation THEN s.deleted ELSE true END) AS visible
  FROM cache.seqs s JOIN cache.partitions p ON p.dataset = s.dataset AND p.partition = s.partition
)
SELECT w.plugin, w.instance, w.dataset, w.partition, w.seq AS watermark_seq,
       max(s.seq) FILTER (WHERE s.visible) AS newest_seq,
       CASE WHEN w.seq IS NOT NULL AND p.live_generation IS NOT NULL THEN
         count(*) FILTER (WHERE s.seq > w.seq AND s.visible)
       END AS rows_behind,
       min(s.time) FILTER (WHERE s.seq > w.seq AND s.visible) AS oldest_unsent_time,
       CASE WHEN w.seq IS NOT NULL THEN count(*) FILTER (WHERE s.seq <= w.seq) END AS rows_at_or_below,
       w.exported_row_count, w.updated_at
-- A watermark that cannot be read has no seq: the daemon then exports everything. Where the live generation is unknown, so
-- is what it would send.
FROM cache.watermarks w
LEFT JOIN cache.partitions p ON p.dataset = w.dataset AND p.partition = w.partition
LEFT JOIN seqs s ON s.dataset = w.dataset AND s.partition = w.partition
GROUP BY w.plugin, w.instance, w.dataset, w.partition, w.seq, w.exported_row_count, w.updated_at, p.live_generation
ORDER BY w.plugin, w.instance, w.dataset, w.partition
