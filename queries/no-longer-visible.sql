-- name: no-longer-visible
-- purpose: rows of retired generations that the live one does not show, and the delete file that took them away
-- needs: live
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
WITH physical AS (
  SELECT _hyp_ingest_seq AS seq, {time} AS time, _generation, _generation_state AS state, _file, _pos,
         known(_deleted) AS deleted
  FROM raw.{dataset}
  WHERE _partition = $partition AND known(_referenced) AND _hyp_ingest_seq IS NOT NULL
),
gone AS (
  SELECT seq, max(time) AS time, max(_generation) AS last_seen_in
  FROM physical
  WHERE state = 'retired' AND NOT deleted
    AND seq NOT IN (SELECT seq FROM physical WHERE state = 'live' AND NOT deleted)
  GROUP BY seq
)
-- A row that no delete file names was dropped by a compaction.
SELECT gone.seq, gone.time, gone.last_seen_in, d.generation AS deleted_in, d.kind, d.file AS delete_file
FROM gone
LEFT JOIN physical p ON p.seq = gone.seq AND p.deleted
LEFT JOIN cache.deleted_rows d ON d.data_file = p._file AND d.pos = p._pos
ORDER BY gone.seq, deleted_in, delete_file
