-- name: straddling-files
-- purpose: data files with rows on both sides of a time, in every generation, with the bounds of their manifests
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: at TIMESTAMP  the time
SELECT generation, state, file, raw_rows, deleted_rows, min_seq, max_seq, min_time, max_time
FROM cache.data_files
WHERE dataset = $dataset AND partition = $partition AND referenced AND min_time <= $at AND max_time > $at
ORDER BY generation, min_seq
