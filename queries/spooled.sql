-- name: spooled
-- purpose: rows that were captured and not yet flushed, by source
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: time COLUMN = auto  the column that holds a row's time
SELECT source, count(*) AS rows, min({time}) AS min_time, max({time}) AS max_time
FROM spool.{dataset}
GROUP BY source
ORDER BY source
