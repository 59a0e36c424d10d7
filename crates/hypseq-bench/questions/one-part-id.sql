SELECT _hyp_ingest_seq, message_created_at, session_id, role, tool_name, content_text
FROM {messages}
WHERE part_id = '{id}'
