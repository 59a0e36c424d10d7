SELECT session_id, count(*) AS n, min(message_created_at) AS began, max(message_created_at) AS ended
FROM {messages}
GROUP BY session_id
ORDER BY n DESC, session_id
LIMIT 10
