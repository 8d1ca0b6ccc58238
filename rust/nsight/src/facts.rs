//! What is known of the reports of a run besides events and ranks.

/// What is known of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportFacts {
    /// Its file.
    pub file: String,
    /// Version of Nsight Systems, and of its tables.
    pub product: Option<String>,
    /// See `product`.
    pub schema: Option<String>,
    /// Its node.
    pub host: Option<String>,
    /// Numbers of its ranks.
    pub ranks: Vec<u32>,
}

/// What is known of the reports of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Each of them.
    pub reports: Vec<ReportFacts>,
    /// Tables that were read, with the number of their rows.
    pub tables: Vec<(String, u64)>,
    /// Tables that say something of the program, but not what is analyzed.
    pub unread: Vec<String>,
    /// How the clocks of reports were related.
    pub clocks: &'static str,
    /// Whether the clocks of the reports of one node may differ.
    pub has_separate_clocks: bool,
    /// Programming models whose tables are read as NVIDIA's schema describes them, untested with a recorded file.
    pub untested: Vec<&'static str>,
    /// Ranks that complete requests of MPI in calls that are not traced.
    pub untraced: Vec<u32>,
    /// What is inferred or left out, with its number.
    pub notes: Vec<(String, u64)>,
    /// Those of them that may be a defect of the recording: the kind, and the place among them.
    pub findings: Vec<(&'static str, usize)>,
}

impl Facts {
    /// Adds what is inferred or left out, if there is any.
    pub(crate) fn note(&mut self, what: &str, count: u64) {
        if count > 0 {
            self.notes.push((what.to_owned(), count));
        }
    }

    /// The same of what may be a defect of the recording.
    pub(crate) fn find(&mut self, kind: &'static str, what: &str, count: u64) {
        if count > 0 {
            self.findings.push((kind, self.notes.len()));
        }
        self.note(what, count);
    }
}
