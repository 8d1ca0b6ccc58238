//! An archive on disk: its anchor, its definitions, and the way to its locations.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

pub use crate::anchor::Anchor;
pub use crate::definitions::{Definitions, LocalDefinitions};
use crate::error::{Error, Place, Result};
use crate::file::ChunkFile;
pub use crate::oddity::{Oddity, OddityKind};
use crate::reader::LocationReader;
use crate::recording::{Events, Recording};

/// Number of bytes of an anchor file that are read at most.
const LARGEST_ANCHOR: u64 = 16 << 20;

/// How to open an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Map event files into memory instead of reading them through a buffer. Nothing may change or truncate the files
    /// while they are mapped.
    pub mmap: bool,
}

/// An archive whose definitions have been read.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// Directory of the files of the locations.
    locations: PathBuf,
    options: OpenOptions,
    anchor: Anchor,
    definitions: Definitions,
    oddities: Vec<Oddity>,
}

impl Archive {
    /// Opens an archive by its anchor file, or by a directory that holds exactly one file `*.otf2`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens an archive with options.
    pub fn open_with(path: &Path, options: OpenOptions) -> Result<Self> {
        let path = anchor_path(path)?;
        let mut bytes = Vec::new();
        // Whatever file the user names, no more is read than an anchor can take.
        let read = |file: File| file.take(LARGEST_ANCHOR).read_to_end(&mut bytes);
        File::open(&path).and_then(read).map_err(Error::io(&path))?;
        let (anchor, mut oddities) = Anchor::from_bytes(&path, &bytes)?;
        let locations = if path.extension() == Some(OsStr::new("otf2")) {
            path.with_extension("")
        } else {
            // Appended, because a name may contain dots that are no extension.
            path.clone()
        };
        let mut definitions_path = locations.clone().into_os_string();
        definitions_path.push(".def");
        let file = match ChunkFile::open(definitions_path.into(), anchor.definition_chunk_size, false) {
            // The anchor exists, so the archive is incomplete rather than the user's path wrong.
            Err(Error::Io { path, source }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoArchive { path, why: "the archive's global definitions are missing".into() });
            }
            file => file?,
        };
        let (definitions, found) = Definitions::read(&file)?;
        oddities.extend(found);
        for (claimed, present, what) in [
            (anchor.number_of_locations, definitions.locations.len(), "locations"),
            (anchor.number_of_global_definitions, definitions.len(), "global definitions"),
        ] {
            if claimed != present as u64 {
                oddities.push(Oddity {
                    kind: OddityKind::Count,
                    place: Place { path: path.clone(), offset: 0 },
                    text: format!("the anchor counts {claimed} {what}, the definitions hold {present}"),
                });
            }
        }
        Ok(Self { path, locations, options, anchor, definitions, oddities })
    }

    /// The anchor file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the archive, `traces` for those of Score-P.
    pub fn name(&self) -> &str {
        self.locations.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// The content of the anchor file.
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// The global definitions.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Defects of the anchor file and the global definitions.
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Opens the files of a location. Without local definitions, ids and times stay as they are. The reader keeps one
    /// file open.
    pub fn location(&self, id: u64) -> Result<LocationReader> {
        let path = self.locations.join(format!("{id}.def"));
        let events = path.with_extension("evt");
        let (local, oddities) = match ChunkFile::open(path, self.anchor.definition_chunk_size, false) {
            Ok(file) => LocalDefinitions::read(&file)?,
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Default::default(),
            Err(error) => return Err(error),
        };
        let events = ChunkFile::open(events, self.anchor.event_chunk_size, self.options.mmap)?;
        let claimed_events = self.definitions.location(id).map(|location| location.number_of_events);
        Ok(LocationReader::new(events, local, oddities, claimed_events))
    }
}

impl Recording for Archive {
    fn path(&self) -> &Path {
        self.path()
    }

    fn name(&self) -> &str {
        self.name()
    }

    fn anchor(&self) -> &Anchor {
        self.anchor()
    }

    fn definitions(&self) -> &Definitions {
        self.definitions()
    }

    fn oddities(&self) -> &[Oddity] {
        self.oddities()
    }

    fn events(&self, location: u64) -> Result<Events<'_>> {
        self.location(location).map(Events::from)
    }
}

/// The anchor file that a path of the user names.
fn anchor_path(path: &Path) -> Result<PathBuf> {
    if !fs::metadata(path).map_err(Error::io(path))?.is_dir() {
        return Ok(path.to_owned());
    }
    let no_archive = |why: String| Err(Error::NoArchive { path: path.to_owned(), why: why.into() });
    let mut anchors = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::io(path))? {
        let found = entry.map_err(Error::io(path))?.path();
        if found.extension() == Some(OsStr::new("otf2")) && found.is_file() {
            anchors.push(found);
        }
    }
    anchors.sort();
    match &anchors[..] {
        [] => no_archive("the directory holds no anchor file (*.otf2)".to_owned()),
        [anchor] => Ok(anchor.clone()),
        _ => {
            let names: Vec<_> = anchors.iter().filter_map(|anchor| anchor.file_name()?.to_str()).collect();
            no_archive(format!("the directory holds {} anchor files: {}; name one", names.len(), names.join(", ")))
        }
    }
}
