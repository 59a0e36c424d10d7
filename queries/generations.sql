-- name: generations
-- purpose: every generation with its state, counts, and seq and time range
SELECT dataset, partition, generation, state, visible_rows, raw_rows, deleted_rows, legacy_rows,
       min_seq, max_seq, min_time, max_time, data_files, problem
FROM cache.generations
ORDER BY dataset, partition, generation
