SELECT {number} AS generation,
    count(*) AS n,
    min(_hyp_ingest_seq) AS min_seq,
    max(_hyp_ingest_seq) AS max_seq,
    min(message_created_at) AS min_time,
    max(message_created_at) AS max_time
FROM {files}
