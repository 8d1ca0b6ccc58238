//! The regions of a rank: distinct names with what they are.

use whywait_otf2::Numbered;
use whywait_otf2::enums::{Paradigm, RegionFlag, RegionRole};

/// What is defined of a region.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The programming model that it is of.
    pub paradigm: Paradigm,
    /// What it does.
    pub role: RegionRole,
    /// What else it is.
    pub flags: RegionFlag,
}

impl Region {
    /// A region without flags.
    pub const fn new(name: String, paradigm: Paradigm, role: RegionRole) -> Self {
        Self { name, paradigm, role, flags: RegionFlag::NONE }
    }

    /// A function, or a part of the program with a name.
    pub const fn user(name: String) -> Self {
        Self::new(name, Paradigm::USER, RegionRole::FUNCTION)
    }
}

/// Regions by number, each once.
pub type Regions = Numbered<Region>;

/// Where a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// To the host.
    ToHost,
    /// From the host to a device.
    ToDevice,
    /// From a device to another.
    Between,
    /// Within a device.
    Within,
}

impl Copy {
    /// In the words of all other formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToHost => "copy to host",
            Self::ToDevice => "copy to device",
            Self::Between => "copy between devices",
            Self::Within => "copy on device",
        }
    }
}
