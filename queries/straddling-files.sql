-- name: straddling-files
-- purpose: data files with rows on both sides of a time, or without bounds for it, in every generation
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: at TIMESTAMP  the time
SELECT generation, state, file, raw_rows, deleted_rows, min_seq, max_seq, min_time, max_time
FROM cache.data_files
WHERE dataset = $dataset AND partition = $partition AND referenced
  AND coalesce(min_time <= $at AND max_time > $at, true)
ORDER BY generation, min_seq
