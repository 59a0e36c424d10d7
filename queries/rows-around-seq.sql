-- name: rows-around-seq
-- purpose: the rows around a seq, from the union over all generations
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: seq BIGINT  the seq in the middle
-- param: rows BIGINT = 5  rows on each side
SELECT _hyp_ingest_seq, {time}, _generation, _deleted
FROM (
  SELECT *,
         row_number() OVER (ORDER BY _hyp_ingest_seq) - count(*) FILTER (WHERE _hyp_ingest_seq <= $seq) OVER () AS place
  FROM complete.{dataset}
  WHERE _partition = $partition AND _hyp_ingest_seq IS NOT NULL
)
WHERE place > -$rows AND place <= $rows
ORDER BY _hyp_ingest_seq
