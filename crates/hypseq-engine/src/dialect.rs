//! The dialect of SQL: DataFusion's default one, in which `attributes->>'model' = 'opus'` means what it says.

use std::any::TypeId;

use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Binds tighter than arithmetic and comparisons, and looser than `::`.
const JSON_ACCESS: u8 = 45;

/// The generic dialect, but for the precedence of JSON access: there, `->>` binds looser than `=`, so that the
/// comparison would be the key.
#[derive(Debug)]
pub(crate) struct HypDialect;

macro_rules! as_in_the_generic_dialect {
    ($($name:ident,)*) => { $(fn $name(&self) -> bool { GenericDialect.$name() })* };
}

impl Dialect for HypDialect {
    fn dialect(&self) -> TypeId {
        GenericDialect.dialect()
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let is_access = matches!(parser.peek_token_ref().token, Token::Arrow | Token::LongArrow);
        is_access.then_some(Ok(JSON_ACCESS))
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        GenericDialect.is_delimited_identifier_start(c)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        GenericDialect.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        GenericDialect.is_identifier_part(c)
    }

    as_in_the_generic_dialect! {
        supports_unicode_string_literal, supports_partition_by_after_order_by, supports_array_join_syntax,
        supports_group_by_expr, supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens, supports_connect_by, supports_match_recognize,
        supports_pipe_operator, supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg, supports_dictionary_syntax,
        supports_window_clause_named_window_reference, supports_parenthesized_set_variables,
        supports_select_wildcard_except, support_map_literal_syntax, allow_extract_custom,
        allow_extract_single_quotes, supports_extract_comma_syntax, supports_create_view_comment_syntax,
        supports_parens_around_table_factor, supports_values_as_table_factor,
        supports_create_index_with_clause, supports_explain_with_utility_options, supports_limit_comma,
        supports_update_order_by, supports_from_first_select, supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition, supports_try_convert, supports_bitwise_shift_operators,
        supports_comment_on, supports_load_extension, supports_named_fn_args_with_assignment_operator,
        supports_struct_literal, supports_empty_projections, supports_nested_comments,
        supports_multiline_comment_hints, supports_user_host_grantee, supports_string_escape_constant,
        supports_array_typedef_with_brackets, supports_match_against, supports_set_names,
        supports_comma_separated_set_assignments, supports_filter_during_aggregation,
        supports_select_wildcard_exclude, supports_data_type_signed_suffix, supports_interval_options,
        supports_quote_delimited_string, supports_select_wildcard_replace, supports_select_wildcard_ilike,
        supports_select_wildcard_rename, supports_optimize_table, supports_install, supports_detach,
        supports_prewhere, supports_with_fill, supports_limit_by, supports_interpolate, supports_settings,
        supports_select_format, supports_comment_optimizer_hint, supports_constraint_keyword_without_name,
        supports_key_column_option, supports_comma_separated_trim, supports_cte_without_as,
        supports_select_item_multi_column_alias, supports_xml_expressions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str, dialect: &dyn Dialect) -> String {
        Parser::parse_sql(dialect, sql).unwrap().remove(0).to_string()
    }

    #[test]
    fn json_access_binds_tighter_than_comparisons_and_arithmetic() {
        for (written, meant) in [
            ("a->>'k' = 'v'", "(a->>'k') = 'v'"),
            ("a->'k'->>'l' IS NOT NULL", "((a->'k')->>'l') IS NOT NULL"),
            ("a->>'k' = b->>'k'", "(a->>'k') = (b->>'k')"),
            ("a->>'k' LIKE '%x%' AND b", "((a->>'k') LIKE '%x%') AND b"),
            ("a->'k' + 1", "(a->'k') + 1"),
            ("a->>'k' IN ('v')", "(a->>'k') IN ('v')"),
            ("NOT a->>'k' BETWEEN 1 AND 2", "NOT ((a->>'k') BETWEEN 1 AND 2)"),
            ("a->>'k'::TEXT", "a->>('k'::TEXT)"),
        ] {
            let unnested = |sql: &str| format!("{:?}", strip(sql));
            assert_eq!(unnested(written), unnested(meant), "{written}");
        }
    }

    /// The parsed expression without its parentheses and places.
    fn strip(sql: &str) -> String {
        use datafusion::sql::sqlparser::ast::{Expr, VisitMut, VisitorMut};
        use std::ops::ControlFlow;
        struct Strip;
        impl VisitorMut for Strip {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Nested(inner) = expr {
                    *expr = (**inner).clone();
                }
                ControlFlow::Continue(())
            }
        }
        let mut parser = Parser::new(&HypDialect).try_with_sql(sql).unwrap();
        let mut expr = parser.parse_expr().unwrap();
        let _ = expr.visit(&mut Strip);
        let mut text = format!("{expr:?}");
        while let Some(start) = text.find("Span(") {
            let end = text[start..].find("))").map_or(text.len(), |end| start + end + 2);
            text.replace_range(start..end.min(text.len()), "");
        }
        text
    }

    #[test]
    fn everything_else_is_as_in_the_generic_dialect() {
        for sql in [
            "SELECT * EXCLUDE (a) FROM t",
            "SELECT * EXCEPT (a), `b c` FROM t LIMIT 1",
            "FROM t SELECT a",
            "SELECT a, FROM t",
            "SELECT count(*) FILTER (WHERE a), {'k': 1}, E'\\n' FROM t /* a /* b */ c */",
        ] {
            assert_eq!(parsed(sql, &HypDialect), parsed(sql, &GenericDialect));
        }
    }
}
