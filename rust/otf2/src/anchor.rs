//! The anchor file: what kind of archive this is.

use std::path::Path;

use crate::enums::{Compression, FileSubstrate};
use crate::error::{Error, Place, Result};
use crate::file::{CHUNK_BEGIN, CHUNK_SIZES, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, HEADER_SIZE};
use crate::oddity::{Oddity, OddityKind};
use crate::wire::{ByteOrder, Decoder, Encoder, Fault};

/// The content of an anchor file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Version of the anchor format, 1 to 3.
    pub anchor_format: u8,
    /// Version of the trace format, 1 or 2.
    pub trace_format: u8,
    /// Version of the library that wrote the archive.
    pub version: [u8; 3],
    /// Size in bytes of a chunk of events.
    pub event_chunk_size: u64,
    /// Size in bytes of a chunk of definitions.
    pub definition_chunk_size: u64,
    /// Layout on disk.
    pub substrate: FileSubstrate,
    /// Compression of the files.
    pub compression: Compression,
    /// Number of locations, as claimed.
    pub number_of_locations: u64,
    /// Number of global definitions, as claimed.
    pub number_of_global_definitions: u64,
    /// Name of the machine.
    pub machine_name: String,
    /// Who wrote the archive.
    pub creator: String,
    /// Free text.
    pub description: String,
    /// Names and values, in file order.
    pub properties: Vec<(String, String)>,
    /// A number that identifies the trace.
    pub trace_id: u64,
    /// Number of snapshots of each location.
    pub number_of_snapshots: u32,
    /// Number of thumbnails.
    pub number_of_thumbnails: u32,
}

impl Default for Anchor {
    fn default() -> Self {
        Self {
            anchor_format: 3,
            trace_format: 2,
            version: [3, 0, 0],
            event_chunk_size: 1 << 20,
            definition_chunk_size: 4 << 20,
            substrate: FileSubstrate::POSIX,
            compression: Compression::NONE,
            number_of_locations: 0,
            number_of_global_definitions: 0,
            machine_name: String::new(),
            creator: String::new(),
            description: String::new(),
            properties: Vec::new(),
            trace_id: 0,
            number_of_snapshots: 0,
            number_of_thumbnails: 0,
        }
    }
}

impl Anchor {
    /// Reads an anchor file from memory; `path` appears in errors.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<(Self, Vec<Oddity>)> {
        let mut from = Decoder::new(bytes, ByteOrder::Little);
        let anchor = read(&mut from).map_err(|fault| Error::fault(path, 0, "anchor", fault))?;
        let place = |offset: usize| Place { path: path.to_owned(), offset: offset as u64 };
        let unsupported = |what: String| Err(Error::Unsupported { place: place(from.position()), what: what.into() });
        if anchor.substrate != FileSubstrate::POSIX {
            let name = anchor.substrate.name().unwrap_or("unknown");
            return unsupported(format!(
                "the archive uses the file substrate {name} ({}); only POSIX (1) can be read",
                anchor.substrate.0
            ));
        }
        if anchor.compression != Compression::NONE {
            let name = anchor.compression.name().unwrap_or("unknown");
            return unsupported(format!(
                "the archive uses the compression {name} ({}); only uncompressed archives can be read",
                anchor.compression.0
            ));
        }
        let mut oddities = Vec::new();
        for (size, what) in [(anchor.event_chunk_size, "event"), (anchor.definition_chunk_size, "definition")] {
            if size <= HEADER_SIZE as u64 {
                return unsupported(format!("the {what} chunk size of {size} bytes leaves no room for records"));
            }
            if !CHUNK_SIZES.contains(&size) {
                oddities.push(Oddity {
                    kind: OddityKind::Range,
                    place: place(0),
                    text: format!("the {what} chunk size of {size} bytes is outside 256 KiB to 16 MiB"),
                });
            }
        }
        if anchor.anchor_format == 3 && from.peek() != Some(END_OF_FILE) {
            oddities.push(Oddity {
                kind: OddityKind::Truncated,
                place: place(from.position()),
                text: "the anchor lacks its end of file mark".to_owned(),
            });
        }
        Ok((anchor, oddities))
    }

    /// The bytes of the anchor file.
    pub(crate) fn write(&self, to: &mut Encoder) {
        to.u8(CHUNK_BEGIN);
        to.u8(to.order().mark());
        to.text("OTF2");
        to.u8(self.anchor_format);
        to.u8(self.trace_format);
        to.raw(&self.version);
        to.full_u64(self.event_chunk_size);
        to.full_u64(self.definition_chunk_size);
        to.u8(self.substrate.0);
        to.u8(self.compression.0);
        to.full_u64(self.number_of_locations);
        to.full_u64(self.number_of_global_definitions);
        to.text(&self.machine_name);
        to.text(&self.creator);
        to.text(&self.description);
        if self.anchor_format >= 2 {
            to.full_u32(self.properties.len() as u32);
            for (name, value) in &self.properties {
                to.text(name);
                to.text(value);
            }
            to.full_u64(self.trace_id);
        }
        if self.anchor_format >= 3 {
            to.full_u32(self.number_of_snapshots);
            to.full_u32(self.number_of_thumbnails);
        }
        to.raw(&[END_OF_FILE, END_OF_BUFFER, END_OF_CHUNK]);
    }
}

fn read(from: &mut Decoder<'_>) -> std::result::Result<Anchor, Fault> {
    let begin = *from;
    let not_an_anchor = begin.fault("an OTF2 anchor file (3, byte order, \"OTF2\")");
    let mark = from.u8()?;
    if mark != CHUNK_BEGIN {
        return Err(not_an_anchor);
    }
    let order = ByteOrder::from_mark(from.u8()?).ok_or(not_an_anchor)?;
    *from = from.with_order(order);
    if from.text()? != b"OTF2" {
        return Err(not_an_anchor);
    }
    let at = *from;
    let anchor_format = from.u8()?;
    if !(1..=3).contains(&anchor_format) {
        return Err(at.fault("anchor format 1, 2 or 3"));
    }
    let at = *from;
    let trace_format = from.u8()?;
    if !(1..=2).contains(&trace_format) {
        return Err(at.fault("trace format 1 or 2"));
    }
    let version = from.take(3, "the version of the writer")?;
    let mut anchor = Anchor {
        anchor_format,
        trace_format,
        version: [version[0], version[1], version[2]],
        event_chunk_size: from.full_u64()?,
        definition_chunk_size: from.full_u64()?,
        substrate: FileSubstrate(from.u8()?),
        compression: Compression(from.u8()?),
        number_of_locations: from.full_u64()?,
        number_of_global_definitions: from.full_u64()?,
        machine_name: text(from)?,
        creator: text(from)?,
        description: text(from)?,
        ..Anchor::default()
    };
    if anchor_format >= 2 {
        for _ in 0..from.full_u32()? {
            anchor.properties.push((text(from)?, text(from)?));
        }
        anchor.trace_id = from.full_u64()?;
    }
    if anchor_format >= 3 {
        anchor.number_of_snapshots = from.full_u32()?;
        anchor.number_of_thumbnails = from.full_u32()?;
    }
    Ok(anchor)
}

fn text(from: &mut Decoder<'_>) -> std::result::Result<String, Fault> {
    from.text().map(|text| String::from_utf8_lossy(text).into_owned())
}
