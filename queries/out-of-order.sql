-- name: out-of-order
-- purpose: stretches of seqs whose rows are older than a row before them: backfills, jitter, clocks that were ahead
-- needs: live
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: minutes BIGINT = 60  only rows that are later than this many minutes
WITH ordered AS (
  SELECT _hyp_ingest_seq AS seq, {time} AS time,
         max({time}) OVER (ORDER BY _hyp_ingest_seq) AS newest_so_far
  FROM raw.{dataset}
  WHERE _partition = $partition AND _generation_state = 'live' AND known(_referenced) AND NOT known(_deleted)
    AND _hyp_ingest_seq IS NOT NULL AND {time} IS NOT NULL
),
flagged AS (
  SELECT *, (to_unixtime(newest_so_far) - to_unixtime(time)) / 60 AS minutes_late,
         row_number() OVER (ORDER BY seq) AS place
  FROM ordered
),
late AS (
  SELECT *, place - row_number() OVER (ORDER BY seq) AS stretch FROM flagged WHERE minutes_late > $minutes
)
SELECT min(seq) AS from_seq, max(seq) AS to_seq, count(*) AS rows,
       min(time) AS min_time, max(time) AS max_time, max(minutes_late) AS max_minutes_late
FROM late
GROUP BY stretch
ORDER BY from_seq
