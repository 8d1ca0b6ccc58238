//! What declares a table: `CREATE TABLE name (column type, ...)`.

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) columns: Vec<String>,
    /// The column that the number of a row stands for.
    pub(super) row_number: Option<usize>,
    pub(super) has_no_row_numbers: bool,
}

/// The words that begin a constraint of the table rather than a column.
const CONSTRAINTS: [&str; 5] = ["constraint", "primary", "unique", "check", "foreign"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// A name in quotes.
    Quoted(String),
    Sign(char),
}

impl Token {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            Self::Sign(_) => None,
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            _ if first.is_whitespace() => {}
            '"' | '`' | '\'' | '[' => {
                let end = if first == '[' { ']' } else { first };
                let mut name = String::new();
                while let Some(character) = rest.next() {
                    if character != end {
                        name.push(character);
                    } else if rest.peek() == Some(&end) && end != ']' {
                        name.push(end);
                        rest.next();
                    } else {
                        break;
                    }
                }
                tokens.push(Token::Quoted(name));
            }
            '-' if rest.peek() == Some(&'-') => while rest.next().is_some_and(|character| character != '\n') {},
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                rest.next();
                while let Some(character) = rest.next().filter(|character| (last, *character) != ('*', '/')) {
                    last = character;
                }
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let mut word = String::from(first);
                while let Some(character) = rest.next_if(|next| next.is_alphanumeric() || matches!(next, '_' | '$')) {
                    word.push(character);
                }
                tokens.push(Token::Word(word));
            }
            _ => tokens.push(Token::Sign(first)),
        }
    }
    tokens
}

impl Statement {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let tokens = tokens(text);
        let open = tokens.iter().position(|token| *token == Token::Sign('('))?;
        let mut depth = 0;
        let mut parts: Vec<Vec<&Token>> = vec![Vec::new()];
        let mut end = tokens.len();
        for (at, token) in tokens.iter().enumerate().skip(open) {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = at;
                break;
            }
            if depth == 1 && *token == Token::Sign(',') {
                parts.push(Vec::new());
            } else if at > open {
                parts.last_mut()?.push(token);
            }
        }
        let mut columns: Vec<String> = Vec::new();
        let (mut integers, mut row_number) = (Vec::new(), None);
        for part in &parts {
            let Some((first, rest)) = part.split_first() else { continue };
            let is_key =
                |part: &[&Token]| part.windows(2).any(|pair| pair[0].is_word("primary") && pair[1].is_word("key"));
            if CONSTRAINTS.iter().any(|word| first.is_word(word)) {
                // PRIMARY KEY (column)
                let names: Vec<&str> = part
                    .iter()
                    .skip_while(|token| ***token != Token::Sign('('))
                    .skip(1)
                    .map_while(|token| token.name())
                    .collect();
                if let ([name], true) = (names.as_slice(), is_key(part)) {
                    let column = columns.iter().position(|column| column.eq_ignore_ascii_case(name));
                    row_number = row_number.or(column.filter(|column| integers.contains(column)));
                }
                continue;
            }
            let is_integer = rest.first().is_some_and(|kind| kind.is_word("integer"));
            if is_integer {
                integers.push(columns.len());
                if is_key(rest) {
                    row_number = Some(columns.len());
                }
            }
            columns.push(first.name()?.to_owned());
        }
        let has_no_row_numbers =
            tokens[end..].windows(2).any(|pair| pair[0].is_word("without") && pair[1].is_word("rowid"));
        Some(Self { columns, row_number, has_no_row_numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<String>, Option<usize>, bool) {
        let Statement { columns, row_number, has_no_row_numbers } = Statement::parse(text).unwrap();
        (columns, row_number, has_no_row_numbers)
    }

    #[test]
    fn columns_are_found() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            parsed("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"),
            (names(&["id", "value"]), Some(0), false)
        );
        assert_eq!(
            parsed(
                "create table \"a b\" ([x] INT, `y z` DECIMAL(4, 2) DEFAULT (1+2) -- why, not\n, /* , */ end INTEGER)"
            ),
            (names(&["x", "y z", "end"]), None, false)
        );
        assert_eq!(
            parsed("CREATE TABLE t (a TEXT, b INTEGER, CONSTRAINT k PRIMARY KEY (b)) WITHOUT ROWID"),
            (names(&["a", "b"]), Some(1), true)
        );
        assert_eq!(Statement::parse("CREATE VIRTUAL TABLE t USING x"), None);
    }
}
