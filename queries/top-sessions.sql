-- name: top-sessions
-- purpose: the sessions with the most rows, their bytes of text and seq range, as the daemon sees them
-- needs: live
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: session COLUMN = session_id  the column that names a row's session
-- param: text COLUMN = content_text  the column whose bytes are counted
-- param: sessions BIGINT = 10  how many sessions
WITH sessions AS (
  SELECT _partition, {session} AS session, count(*) AS rows, sum(octet_length({text})) AS text_bytes,
         min(_hyp_ingest_seq) AS min_seq, max(_hyp_ingest_seq) AS max_seq
  FROM raw.{dataset}
  WHERE _generation_state = 'live' AND known(_referenced) AND NOT known(_deleted)
  GROUP BY _partition, {session}
),
ranked AS (
  SELECT *, row_number() OVER (ORDER BY rows DESC, _partition, session) AS place FROM sessions
)
SELECT _partition, session, rows, text_bytes, min_seq, max_seq FROM ranked WHERE place <= $sessions ORDER BY place
