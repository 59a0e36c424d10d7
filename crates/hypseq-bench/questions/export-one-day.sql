COPY (
    SELECT _hyp_ingest_seq, part_id, message_id, message_index, session_id, client_name, user_id, provider, model, cwd,
        git_branch, message_created_at, role, part_type, content_text, tool_name, is_error, date
    FROM {messages}
    WHERE date = '{day}'
) TO '{file}' {as_snappy_parquet}
