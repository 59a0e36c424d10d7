WITH every AS ({rows}),
rows AS MATERIALIZED (SELECT seq, time FROM every),
bounds AS (
    SELECT
        max(seq) FILTER (WHERE time <= {time}) AS tight_seq,
        min(seq) FILTER (WHERE time > {time}) AS first_seq_after,
        count(*) FILTER (WHERE time <= {time}) AS rows_at_or_before,
        count(*) FILTER (WHERE time > {time}) AS rows_after
    FROM rows
),
safe AS (SELECT max(seq) AS safe_seq FROM rows, bounds WHERE seq < first_seq_after)
SELECT 0 AS generation, tight_seq, safe_seq, first_seq_after, rows_at_or_before, rows_after,
    (SELECT count(*) FROM rows WHERE time > {time} AND seq <= tight_seq) AS lost_at_tight,
    (SELECT count(*) FROM rows WHERE time <= {time} AND seq > safe_seq) AS resent_at_safe,
    (SELECT id FROM every WHERE seq = safe_seq) AS last_id,
    (SELECT id FROM every WHERE seq = first_seq_after) AS next_id
FROM bounds, safe
