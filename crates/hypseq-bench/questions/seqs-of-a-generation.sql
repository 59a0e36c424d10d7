SELECT {number} AS generation,
    max(_hyp_ingest_seq) FILTER (WHERE message_created_at <= {time}) AS tight_seq,
    min(_hyp_ingest_seq) FILTER (WHERE message_created_at > {time}) AS first_seq_after
FROM {files}
