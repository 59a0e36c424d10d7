-- name: rows-per-day
-- purpose: rows per day and partition with their seq range, as the daemon sees them
-- needs: live
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: time COLUMN = auto  the column that holds a row's time
SELECT _partition,
       date_trunc('day', {time}) AS day,
       count(*) AS rows,
       min(_hyp_ingest_seq) AS min_seq,
       max(_hyp_ingest_seq) AS max_seq
FROM raw.{dataset}
WHERE _generation_state = 'live' AND known(_referenced) AND NOT known(_deleted)
GROUP BY _partition, day
ORDER BY _partition, day
