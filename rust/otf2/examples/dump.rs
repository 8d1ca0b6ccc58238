//! Prints an archive record by record: one line for each definition and each event, locations in the order of their
//! definitions.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use whywait_otf2::records::{TypedValue, Value};
use whywait_otf2::{Archive, Attributes, Event, EventSink};

struct Printer<W> {
    to: W,
    attributes: String,
}

impl<W: Write> Printer<W> {
    fn print(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) {
        if !attributes.is_empty() {
            self.attributed(attributes);
        }
        let mut line = format!("{time} {}", event.name());
        event.visit(&mut |name, value| show(&mut line, name, value));
        line.push_str(&self.attributes);
        self.attributes.clear();
        let _ = writeln!(self.to, "{line}");
    }
}

impl<W: Write> EventSink for Printer<W> {
    fn enter(&mut self, time: i64, region: u32) {
        self.print(time, &Event::Enter { region }, &Attributes::NONE);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.print(time, &Event::Leave { region }, &Attributes::NONE);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.print(time, record, attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        for attribute in attributes {
            let TypedValue { kind, bits } = attribute.value;
            let _ = write!(self.attributes, " @{}={}:{bits}", attribute.id, kind.0);
        }
    }
}

fn show(line: &mut String, name: &str, value: Value<'_>) {
    let _ = match value {
        Value::U8(value) => write!(line, " {name}={value}"),
        Value::U32(value) => write!(line, " {name}={value}"),
        Value::U64(value) => write!(line, " {name}={value}"),
        Value::I64(value) => write!(line, " {name}={value}"),
        Value::F64(value) => write!(line, " {name}={value}"),
        Value::Str(value) => write!(line, " {name}={value:?}"),
        Value::Enum { number, .. } => write!(line, " {name}={number}"),
        Value::Typed(value) => write!(line, " {name}={}:{}", value.kind.0, value.bits),
        Value::U32s(values) => write!(line, " {name}={values:?}"),
        Value::U64s(values) => write!(line, " {name}={values:?}"),
        Value::Metrics(values) => {
            let values: Vec<_> = values.iter().map(|value| format!("{}:{}", value.kind.0, value.bits)).collect();
            write!(line, " {name}={values:?}")
        }
        Value::Strings(values) => write!(line, " {name}={:?}", values.iter().collect::<Vec<_>>()),
        Value::IoProperties(values) => write!(line, " {name}={values:?}"),
        Value::IdPairs(values) => write!(line, " {name}={values:?}"),
    };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: dump ARCHIVE")?;
    let archive = Archive::open(Path::new(&path))?;
    let mut to = BufWriter::new(io::stdout().lock());
    for oddity in archive.oddities() {
        writeln!(to, "# {oddity}")?;
    }
    for definition in archive.definitions().iter() {
        let mut line = definition.kind().to_owned();
        definition.visit(&mut |name, value| show(&mut line, name, value));
        writeln!(to, "{line}")?;
    }
    let mut buffer = Vec::new();
    for location in &archive.definitions().locations {
        let reader = archive.location(location.id)?;
        writeln!(to, "= {}", location.id)?;
        let mut printer = Printer { to: &mut to, attributes: String::new() };
        let summary = reader.read_events(&mut buffer, &mut printer)?;
        for oddity in reader.oddities().iter().chain(&summary.oddities) {
            writeln!(to, "# {oddity}")?;
        }
        if let Some(error) = summary.truncated {
            writeln!(to, "# {error}")?;
        }
    }
    to.flush()?;
    Ok(())
}
