SELECT {number} AS generation, _hyp_ingest_seq AS seq, message_created_at AS time, part_id AS id FROM {files}
