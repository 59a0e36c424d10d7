SELECT _hyp_ingest_seq, message_created_at, part_id, role, tool_name, content_text
FROM {messages}
WHERE _hyp_ingest_seq BETWEEN {last_seq} - 250 AND {last_seq} + 250
ORDER BY _hyp_ingest_seq
