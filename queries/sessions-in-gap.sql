-- name: sessions-in-gap
-- purpose: sessions with rows between two seqs in any generation, and whether they span them
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: session COLUMN = session_id  the column that names a row's session
-- param: from BIGINT  first seq of the gap
-- param: to BIGINT  last seq of the gap
SELECT {session},
       count(*) FILTER (WHERE _hyp_ingest_seq BETWEEN $from AND $to) AS rows_in_gap,
       count(*) AS rows_in_all,
       min({time}) AS first_time,
       max({time}) AS last_time,
       min(_hyp_ingest_seq) AS min_seq,
       max(_hyp_ingest_seq) AS max_seq,
       -- Rows from before there were seqs lie before every gap.
       bool_or(coalesce(_hyp_ingest_seq, 0) < $from) AS began_before,
       bool_or(coalesce(_hyp_ingest_seq, 0) > $to) AS goes_on_after
FROM complete.{dataset}
WHERE _partition = $partition
GROUP BY {session}
HAVING count(*) FILTER (WHERE _hyp_ingest_seq BETWEEN $from AND $to) > 0
ORDER BY min_seq, {session}
