SELECT date, count(*) AS n, min(_hyp_ingest_seq) AS min_seq, max(_hyp_ingest_seq) AS max_seq
FROM {messages}
GROUP BY date
ORDER BY date
