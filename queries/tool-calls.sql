-- name: tool-calls
-- purpose: calls of a tool between two seqs in any generation, with one of their arguments
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: time COLUMN = auto  the column that holds a row's time
-- param: tool TEXT = Bash  the tool's name
-- param: argument TEXT = cmd  the argument to show; all of them where a call lacks it
-- param: from BIGINT  first seq
-- param: to BIGINT  last seq
SELECT _hyp_ingest_seq, {time}, session_id, coalesce(tool_args->>CAST($argument AS TEXT), tool_args) AS argument
FROM complete.{dataset}
WHERE _partition = $partition AND _hyp_ingest_seq BETWEEN $from AND $to
  AND tool_name = $tool AND part_type = 'tool_call'
ORDER BY _hyp_ingest_seq
