-- name: duplicate-ids
-- purpose: ids under more than one seq in any generation: rows flushed again after a crash
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: id COLUMN = part_id  the column that holds a row's id
SELECT _partition, {id}, count(*) AS rows, min(_hyp_ingest_seq) AS min_seq, max(_hyp_ingest_seq) AS max_seq,
       string_agg(CAST(_hyp_ingest_seq AS TEXT), ' ' ORDER BY _hyp_ingest_seq) AS seqs
FROM complete.{dataset}
WHERE _hyp_ingest_seq IS NOT NULL AND {id} IS NOT NULL
GROUP BY _partition, {id}
HAVING count(*) > 1
ORDER BY _partition, min_seq
