//! The first line of a trace: how long it is, and who took part.

/// No run is longer, ticks: a hundred days of nanoseconds.
pub(crate) const MOST_TIME: i64 = 1 << 53;
/// More threads than any run has.
const MOST_THREADS: u64 = 1 << 22;

/// A task of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) threads: u32,
    /// Its node, from 1; 0 if unknown.
    pub(crate) node: u32,
}

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the run, ticks.
    pub(crate) end: i64,
    /// Ticks of a second.
    pub(crate) resolution: u64,
    /// The tasks of each application.
    pub(crate) applications: Vec<Vec<Task>>,
    /// Number of lines of communicators that follow, as claimed.
    pub(crate) communicators: u64,
}

/// Whether a file that begins like this is a trace.
pub(crate) fn is_trace(head: &[u8]) -> bool {
    const MAGIC: &[u8] = b"#Paraver ";
    head.get(..MAGIC.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(MAGIC))
}

struct Cursor<'a> {
    text: &'a str,
}

impl Cursor<'_> {
    fn number(&mut self) -> Option<u64> {
        let text = self.text.trim_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number = text[..digits].parse().ok()?;
        self.text = text[digits..].trim_start();
        Some(number)
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.text.strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    /// Passes over what is in brackets, if anything.
    fn skip_brackets(&mut self) -> Option<()> {
        if self.text.starts_with('(') {
            self.text = self.text.split_once(')')?.1;
        }
        Some(())
    }
}

impl Header {
    /// Reads the line; the error says what is wrong with it.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let line = line.trim_end();
        let rest = line.get("#Paraver ".len()..).unwrap_or_default().trim_start();
        // The date has a colon of its own.
        let rest = if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
        let mut cursor = Cursor { text: rest.split_once(':').map_or("", |(_, rest)| rest) };
        let wrong = |what: &str| format!("the header has no {what}");
        let end = cursor
            .number()
            .and_then(|end| i64::try_from(end).ok())
            .filter(|end| *end <= MOST_TIME)
            .ok_or_else(|| wrong("length"))?;
        let resolution = match () {
            () if cursor.takes("_ns") => 1_000_000_000,
            () if cursor.takes("_ms") => 1000,
            () => {
                cursor.takes("_us");
                1_000_000
            }
        };
        cursor.takes(":");
        cursor.number().and_then(|_| cursor.skip_brackets()).ok_or_else(|| wrong("number of nodes"))?;
        cursor.takes(":");
        let count = cursor.number().ok_or_else(|| wrong("number of applications"))?;
        let mut applications = Vec::new();
        let mut threads = 0;
        for _ in 0..count {
            let tasks = (cursor.takes(":") || cursor.takes(",")).then(|| Self::tasks(&mut cursor)).flatten();
            let tasks = tasks.ok_or_else(|| wrong(&format!("tasks of application {}", applications.len() + 1)))?;
            threads += tasks.iter().map(|task| u64::from(task.threads)).sum::<u64>();
            if threads > MOST_THREADS {
                return Err(format!("the header has {threads} threads, more than any run"));
            }
            applications.push(tasks);
        }
        if threads == 0 {
            return Err(wrong("tasks"));
        }
        let communicators = if cursor.takes(",") || cursor.takes(":") { cursor.number().unwrap_or(0) } else { 0 };
        Ok(Self { end, resolution, applications, communicators })
    }

    /// `TASKS(threads:node,...)`, with a colon before the bracket in files of small writers.
    fn tasks(cursor: &mut Cursor<'_>) -> Option<Vec<Task>> {
        let count = cursor.number()?;
        cursor.takes(":");
        if count == 0 {
            cursor.skip_brackets()?;
            return Some(Vec::new());
        }
        if !cursor.takes("(") {
            return None;
        }
        let mut tasks = Vec::new();
        loop {
            let threads = u32::try_from(cursor.number()?).ok()?;
            let node = if cursor.takes(":") { u32::try_from(cursor.number()?).ok()? } else { 0 };
            // Each task has a thread at least.
            tasks.push(Task { threads: threads.max(1), node });
            if cursor.takes(")") {
                break;
            }
            if !cursor.takes(",") {
                return None;
            }
        }
        (tasks.len() as u64 == count).then_some(tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Header {
        Header::read(line).expect(line)
    }

    #[test]
    fn all_forms_of_headers_are_read() {
        let usual = read("#Paraver (01/01/2026 at 12:00):60000_ns:1(3):1:3(1:1,1:1,1:1),1\r");
        assert_eq!((usual.end, usual.resolution, usual.communicators), (60000, 1_000_000_000, 1));
        assert_eq!(usual.applications, [vec![Task { threads: 1, node: 1 }; 3]]);
        let two = "#PARAVER (0):9:0:2:2(1:1,4:2),3(1:1,1:1,1:1),7";
        for line in [two.to_owned(), two.replace("),3", "):3"), two.replace("2(", "2:(").replace("3(", "3:(")] {
            let header = read(&line);
            assert_eq!((header.end, header.resolution, header.communicators), (9, 1_000_000, 7), "{line}");
            assert_eq!(header.applications[0][1], Task { threads: 4, node: 2 }, "{line}");
            assert_eq!(header.applications[1].len(), 3, "{line}");
        }
        assert_eq!(read("#Paraver 38:5_us:2(4,4):1:1(1:1)").applications, [vec![Task { threads: 1, node: 1 }]]);
    }

    #[test]
    fn what_a_header_lacks_is_said() {
        for (line, what) in [
            ("#Paraver (", "no length"),
            ("#Paraver (1):x", "no length"),
            ("#Paraver (1):5_ns:", "number of nodes"),
            ("#Paraver (1):5_ns:1(2):1", "tasks of application 1"),
            ("#Paraver (1):5_ns:1(2):1:2(1:1)", "tasks of application 1"),
            ("#Paraver (1):5_ns:1(2):0", "no tasks"),
            ("#Paraver (1):5_ns:1:1:1(4294967295:1)", "more than any run"),
            ("#Paraver (1):99999999999999999999:1:1:1(1:1)", "no length"),
        ] {
            let error = Header::read(line).expect_err(line);
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
