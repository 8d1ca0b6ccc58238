//! What a counter counts.

/// How values relate to time, as in OTF2.
pub(crate) const ACCUMULATED: u32 = 0x00;
pub(crate) const POINT: u32 = 0x11;
pub(crate) const MAXIMUM: u32 = 0x21;
pub(crate) const LEVEL: u32 = 0x31;

/// What a counter counts, for readers.
pub(crate) struct Meaning {
    pub(crate) name: String,
    pub(crate) mode: u32,
    /// Its values are multiples of this power of ten in the unit.
    pub(crate) exponent: i32,
    pub(crate) unit: &'static str,
    pub(crate) description: String,
}
