SELECT count(*) AS hits, min(_hyp_ingest_seq) AS first_seq, max(_hyp_ingest_seq) AS last_seq
FROM {messages}
WHERE content_text LIKE '%rewind plan%'
