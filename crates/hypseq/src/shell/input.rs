//! Takes what was typed apart into statements and backslash commands.
//!
//! Where a statement ends is for SQL's own tokenizer to say: it knows strings, quoted names, comments and dollar quotes.

use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A statement that `;` ends, without it.
    Statement(&'a str),
    /// A backslash command, to the end of its line.
    Command(&'a str),
    /// A statement that a backslash command ends, with that command.
    Ended(&'a str, &'a str),
}

/// What was typed, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Typed<'a> {
    pub pieces: Vec<Piece<'a>>,
    /// The beginning of a statement that has not ended.
    pub rest: &'a str,
    /// What stands open at its end: a quote, `*` for a comment, `-` for nothing.
    pub open: char,
}

/// Takes apart all that was typed since the last statement ended.
pub fn take_apart(typed: &str) -> Typed<'_> {
    let mut pieces = Vec::new();
    let mut text = typed;
    loop {
        let (tokens, end) = tokens(text);
        let mut start = 0;
        let mut is_empty = true;
        let mut command = None;
        for token in &tokens {
            match token.token {
                Token::SemiColon => {
                    let at = offset(text, token.span.start);
                    if !is_empty {
                        pieces.push(Piece::Statement(text[start..at].trim()));
                    }
                    (start, is_empty) = (at + 1, true);
                }
                Token::Backslash => {
                    command = Some(offset(text, token.span.start));
                    break;
                }
                Token::Whitespace(_) | Token::EOF => {}
                _ => is_empty = false,
            }
        }
        if let Some(at) = command {
            let next = text[at..].find('\n').map_or(text.len(), |line| at + line + 1);
            let command = text[at..next].trim();
            pieces.push(if is_empty { Piece::Command(command) } else { Piece::Ended(text[start..at].trim(), command) });
            text = &text[next..];
            continue;
        }
        let rest = &text[start..];
        return match end {
            End::Open(open) => Typed { pieces, rest, open },
            // The parser will say what is wrong with it.
            End::NoSql if text.trim_end().ends_with(';') => {
                pieces.push(Piece::Statement(rest.trim_end().trim_end_matches(';').trim()));
                Typed { pieces, rest: "", open: '-' }
            }
            // Only blanks and comments: nothing that wants an end.
            End::Whole if is_empty => Typed { pieces, rest: "", open: '-' },
            End::Whole | End::NoSql => Typed { pieces, rest, open: '-' },
        };
    }
}

/// How a text ends.
enum End {
    Whole,
    /// Within a quotation or comment of this kind.
    Open(char),
    /// With something that is no SQL.
    NoSql,
}

/// The tokens of a text, as far as it can be read.
fn tokens(text: &str) -> (Vec<TokenWithSpan>, End) {
    let mut tokens = Vec::new();
    let read = Tokenizer::new(&GenericDialect, text).with_unescape(false).tokenize_with_location_into_buf(&mut tokens);
    let end = match read.map_err(|error| error.message) {
        Ok(()) => End::Whole,
        Err(message) if message.ends_with("in a multi-line comment") => End::Open('*'),
        Err(message) if message.starts_with("Unterminated dollar-quoted") => End::Open('$'),
        Err(message) if message.starts_with("Unterminated") => End::Open('\''),
        Err(message) if message.ends_with("before EOF.") => End::Open('"'),
        Err(_) => End::NoSql,
    };
    (tokens, end)
}

/// Where a line and column, both from 1 and in characters, stand in a text.
pub fn offset(text: &str, location: Location) -> usize {
    let place = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let line_start = match place(location.line) {
        0 => 0,
        line => text.match_indices('\n').nth(line - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    let line = &text[line_start..];
    line_start + line.char_indices().nth(place(location.column)).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::Piece::{Command, Ended, Statement};
    use super::*;

    #[track_caller]
    fn check(typed: &str, pieces: &[Piece<'_>], rest: &str, open: char) {
        assert_eq!(take_apart(typed), Typed { pieces: pieces.to_vec(), rest, open });
    }

    #[test]
    fn statements_end_at_semicolons() {
        check("SELECT 1;\n", &[Statement("SELECT 1")], "", '-');
        check("SELECT 'é'; SELECT\n 2 ; ;\n", &[Statement("SELECT 'é'"), Statement("SELECT\n 2")], "", '-');
        check("SELECT 1; SELECT 2\n", &[Statement("SELECT 1")], " SELECT 2\n", '-');
    }

    #[test]
    fn not_within_quotes_comments_and_dollar_quotes() {
        check("SELECT ';\n", &[], "SELECT ';\n", '\'');
        check("SELECT ';'';'\n;", &[Statement("SELECT ';'';'")], "", '-');
        check("SELECT \"a;\n", &[], "SELECT \"a;\n", '"');
        check("SELECT 1 /* ; /* ; */ ;\n", &[], "SELECT 1 /* ; /* ; */ ;\n", '*');
        check("SELECT 1 /* ; /* ; */ ; */;\n", &[Statement("SELECT 1 /* ; /* ; */ ; */")], "", '-');
        check("SELECT 1 -- ;\n", &[], "SELECT 1 -- ;\n", '-');
        check("SELECT $$;\n", &[], "SELECT $$;\n", '$');
        check("SELECT $a$;$$;$a$;\n", &[Statement("SELECT $a$;$$;$a$")], "", '-');
        check("SELECT E'\\';';\n", &[Statement("SELECT E'\\';'")], "", '-');
    }

    #[test]
    fn blanks_and_comments_are_no_statement() {
        check("\n -- hello\n;\n", &[], "", '-');
        check("SELECT 1; -- done\n", &[Statement("SELECT 1")], "", '-');
        check("/* not yet\n", &[], "/* not yet\n", '*');
    }

    #[test]
    fn commands_begin_or_end_a_statement() {
        check("\\d x\n", &[Command("\\d x")], "", '-');
        check(
            "SELECT 1; \\x on\nSELECT 2;\n",
            &[Statement("SELECT 1"), Command("\\x on"), Statement("SELECT 2")],
            "",
            '-',
        );
        check("SELECT 1\n \\g it's here.csv\n", &[Ended("SELECT 1", "\\g it's here.csv")], "", '-');
        check("-- first\n\\q\n", &[Command("\\q")], "", '-');
        check("SELECT '\n\\q\n", &[], "SELECT '\n\\q\n", '\'');
    }

    #[test]
    fn what_is_no_sql_ends_with_its_line() {
        check("SELECT 'é' ._a\n", &[], "SELECT 'é' ._a\n", '-');
        check("SELECT 1; SELECT\n ._a;\n", &[Statement("SELECT 1"), Statement("SELECT\n ._a")], "", '-');
    }
}
