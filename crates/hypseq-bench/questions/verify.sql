WITH every AS ({rows}),
rows AS MATERIALIZED (SELECT generation, seq, time FROM every),
live AS (SELECT seq, time FROM rows WHERE generation = {live}),
boundary AS (
    SELECT max(seq) AS safe_seq FROM live WHERE seq < (SELECT min(seq) FROM live WHERE time > {time})
),
complete AS MATERIALIZED (SELECT DISTINCT seq FROM rows),
figures AS (
    SELECT generation,
        count(*) AS visible_rows,
        max(seq) AS max_seq,
        max(seq) FILTER (WHERE time <= {time}) AS tight_seq,
        min(seq) FILTER (WHERE time > {time}) AS first_seq_after,
        max(seq) FILTER (WHERE seq <= safe_seq) AS last_seq,
        min(seq) FILTER (WHERE seq > safe_seq) AS next_seq
    FROM rows, boundary
    GROUP BY generation
)
SELECT generation, visible_rows, max_seq, tight_seq, first_seq_after, last_seq, next_seq,
    (SELECT id FROM every WHERE every.generation = figures.generation AND seq = last_seq) AS last_id,
    (SELECT id FROM every WHERE every.generation = figures.generation AND seq = next_seq) AS next_id,
    (SELECT count(*) FROM complete WHERE seq <= max_seq) - visible_rows AS missing_rows
FROM figures
ORDER BY generation
