//! Which functions of a recording become regions of the trace.

use regex_lite::Regex;

/// Names to keep, and names to drop.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    only: Option<Regex>,
    filter: Option<Regex>,
}

impl Selection {
    /// The selection of two regular expressions, and what is wrong with them: those do not count.
    pub(crate) fn new(only: Option<&str>, filter: Option<&str>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut read = |option: &str, text: Option<&str>| {
            let regex = text.map(Regex::new)?;
            regex.map_err(|error| wrong.push(format!("--{option} was ignored: {error}"))).ok()
        };
        let selection = Self { only: read("only", only), filter: read("filter", filter) };
        (selection, wrong)
    }

    /// Whether a function is a region.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.is_match(name))
            && !self.filter.as_ref().is_some_and(|filter| filter.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_kept_by_name() {
        let keeps = |only, filter, name| Selection::new(only, filter).0.keeps(name);
        assert!(keeps(None, None, "main"));
        assert!(keeps(Some("^MPI_|solve"), None, "grid::solve(int)") && !keeps(Some("^MPI_"), None, "main"));
        assert!(!keeps(None, Some("^std::"), "std::sort") && keeps(None, Some("^std::"), "my::std::sort"));
        assert!(!keeps(Some("MPI"), Some("MPI_Test"), "MPI_Testall"));
    }

    #[test]
    fn a_wrong_expression_does_not_count_and_is_named() {
        let (selection, wrong) = Selection::new(Some("("), Some("main"));
        assert!(selection.keeps("solve") && !selection.keeps("main"));
        assert!(wrong.len() == 1 && wrong[0].starts_with("--only was ignored: "), "{wrong:?}");
    }
}
