//! The packets of a Perfetto trace, one after the other into a file.
//!
//! *Source*: `protos/perfetto/trace/perfetto_trace.proto` of Perfetto; the numbers of the fields are its own.

use std::io::Write;

use super::protobuf::Message;
use crate::Result;

/// A track that events can be on.
pub(super) type Track = u64;

/// An interned name: its number in the file, counted from 1.
pub(super) type Name = u64;

/// Arguments of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Key {
    Metric = 1,
    Waiting,
    CauseRank,
    CauseThread,
    CauseCallpath,
    CauseTime,
    Callpath,
    WaitsForLast,
    Direct,
    Indirect,
    Propagating,
    Caused,
    BytesSent,
    BytesReceived,
    Bytes,
    Window,
    Rank,
    Thread,
    Destination,
    CallpathTime,
    Hop,
    Lock,
}

const KEYS: [(Key, &str); 22] = [
    (Key::Metric, "metric"),
    (Key::Waiting, "waiting"),
    (Key::CauseRank, "cause_rank"),
    (Key::CauseThread, "cause_thread"),
    (Key::CauseCallpath, "cause_callpath"),
    (Key::CauseTime, "cause_time"),
    (Key::Callpath, "callpath"),
    (Key::WaitsForLast, "last"),
    (Key::Direct, "direct"),
    (Key::Indirect, "indirect"),
    (Key::Propagating, "propagating"),
    (Key::Caused, "caused"),
    (Key::BytesSent, "bytes_sent"),
    (Key::BytesReceived, "bytes_received"),
    (Key::Bytes, "bytes"),
    (Key::Window, "window"),
    (Key::Rank, "rank"),
    (Key::Thread, "thread"),
    (Key::Destination, "destination_rank"),
    (Key::CallpathTime, "callpath_time"),
    (Key::Hop, "hop"),
    (Key::Lock, "lock"),
];

/// Kinds of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Category {
    Region = 1,
    WaitState,
    CriticalPath,
    OneSided,
    Lock,
    Nonblocking,
    Hidden,
    Sample,
}

const CATEGORIES: [(Category, &str); 8] = [
    (Category::Region, "region"),
    (Category::WaitState, "wait_state"),
    (Category::CriticalPath, "critical_path"),
    (Category::OneSided, "one_sided"),
    (Category::Lock, "lock"),
    (Category::Nonblocking, "nonblocking"),
    (Category::Hidden, "hidden"),
    (Category::Sample, "sample"),
];

// Fields of TracePacket, TrackDescriptor, TrackEvent, DebugAnnotation and InternedData.
const PACKET: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const EVENT: u32 = 11;
const INTERNED: u32 = 12;
const FLAGS: u32 = 13;
const DESCRIPTOR: u32 = 60;
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
const ANNOTATION: u32 = 4;

/// Writer of packets.
pub(super) struct Packets<W> {
    out: W,
    packet: Message,
    /// Bytes written.
    pub(super) bytes: u64,
}

/// The begin of a slice, or an instant.
pub(super) struct Event<'a>(&'a mut Message);

impl<W: Write> Packets<W> {
    /// Goes on with a file of interned names.
    pub(super) fn without_names(out: W) -> Self {
        Self { out, packet: Message::default(), bytes: 0 }
    }

    /// Writes packets that were written elsewhere.
    pub(super) fn append(&mut self, packets: &[u8]) -> Result<()> {
        self.bytes += packets.len() as u64;
        Ok(self.out.write_all(packets)?)
    }

    /// What was written to.
    pub(super) fn into_inner(self) -> W {
        self.out
    }

    /// Begins a file with the interned `names`, numbered from 1 in their order.
    pub(super) fn new(out: W, names: &[String]) -> Result<Self> {
        let mut packets = Self::without_names(out);
        packets.packet(|packet| {
            packet.number(FLAGS, CLEARED | NEEDED);
            packet.message(INTERNED, |interned| {
                let mut table = |field, number: u64, name: &str| {
                    interned.message(field, |entry| {
                        entry.number(1, number);
                        entry.text(2, name);
                    });
                };
                for (number, name) in (1..).zip(names) {
                    table(2, number, name);
                }
                for (category, name) in CATEGORIES {
                    table(1, category as u64, name);
                }
                for (key, name) in KEYS {
                    table(3, key as u64, name);
                }
            });
        })?;
        // Perfetto orders processes by rank only below a root track with explicit ordering.
        packets.packet(|packet| {
            packet.message(DESCRIPTOR, |root| {
                root.number(1, 0);
                root.number(19, 1);
            });
        })?;
        Ok(packets)
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) -> Result<()> {
        self.packet.0.clear();
        self.packet.message(PACKET, |packet| {
            packet.number(SEQUENCE, 1);
            fill(packet);
        });
        self.bytes += self.packet.0.len() as u64;
        self.out.write_all(&self.packet.0)?;
        Ok(())
    }

    fn descriptor(&mut self, track: Track, fill: impl FnOnce(&mut Message)) -> Result<()> {
        self.packet(|packet| {
            packet.message(DESCRIPTOR, |descriptor| {
                descriptor.number(1, track);
                fill(descriptor);
            });
        })
    }

    /// A process; `order` is its position among the others.
    pub(super) fn process(&mut self, track: Track, id: u32, name: &str, order: u32) -> Result<()> {
        self.descriptor(track, |descriptor| {
            descriptor.message(3, |process| {
                process.number(1, u64::from(id));
                process.text(6, name);
            });
            descriptor.number(12, u64::from(order));
        })
    }

    /// A thread of a process, given as its track and number.
    pub(super) fn thread(&mut self, track: Track, process: (Track, u32), id: u32, name: &str) -> Result<()> {
        self.descriptor(track, |descriptor| {
            descriptor.number(5, process.0);
            descriptor.message(4, |thread| {
                thread.number(1, u64::from(process.1));
                thread.number(2, u64::from(id));
                thread.text(5, name);
            });
        })
    }

    /// Any other track, optionally below another one.
    pub(super) fn track(&mut self, track: Track, above: Option<Track>, name: &str) -> Result<()> {
        self.descriptor(track, |descriptor| {
            descriptor.text(2, name);
            if let Some(above) = above {
                descriptor.number(5, above);
            }
        })
    }

    /// A counter track, optionally below another track; `order` is its position among its siblings.
    pub(super) fn counter_track(
        &mut self,
        track: Track,
        above: Option<Track>,
        (name, unit): (&str, &str),
        order: u32,
    ) -> Result<()> {
        self.descriptor(track, |descriptor| {
            descriptor.text(2, name);
            if let Some(above) = above {
                descriptor.number(5, above);
            }
            descriptor.message(8, |counter| counter.text(6, unit));
            descriptor.number(12, u64::from(order));
        })
    }

    /// Interns a text, for arguments from here on.
    pub(super) fn intern(&mut self, number: u64, text: &str) -> Result<()> {
        self.packet(|packet| {
            packet.number(FLAGS, NEEDED);
            packet.message(INTERNED, |interned| {
                interned.message(29, |entry| {
                    entry.number(1, number);
                    entry.text(2, text);
                });
            });
        })
    }

    #[inline]
    fn event(&mut self, time: u64, kind: u64, track: Track, fill: impl FnOnce(&mut Event)) -> Result<()> {
        self.packet(|packet| {
            packet.number(TIMESTAMP, time);
            packet.number(FLAGS, NEEDED);
            packet.message(EVENT, |event| {
                event.number(9, kind);
                event.number(11, track);
                fill(&mut Event(event));
            });
        })
    }

    /// Begins a slice; time in ns.
    #[inline]
    pub(super) fn begin(&mut self, time: u64, track: Track, fill: impl FnOnce(&mut Event)) -> Result<()> {
        self.event(time, 1, track, fill)
    }

    /// Ends the innermost slice of a track.
    #[inline]
    pub(super) fn end(&mut self, time: u64, track: Track, fill: impl FnOnce(&mut Event)) -> Result<()> {
        self.event(time, 2, track, fill)
    }

    /// Writes an instant.
    pub(super) fn instant(&mut self, time: u64, track: Track, fill: impl FnOnce(&mut Event)) -> Result<()> {
        self.event(time, 3, track, fill)
    }

    /// Sets the value of a counter from here on.
    pub(super) fn counter(&mut self, time: u64, track: Track, value: f64) -> Result<()> {
        self.event(time, 4, track, |event| event.0.double(44, value))
    }

    /// Flushes the file; returns its size in bytes.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.out.flush()?;
        Ok(self.bytes)
    }
}

impl Event<'_> {
    #[inline]
    pub(super) fn named(&mut self, name: Name, category: Category) {
        self.0.number(10, name);
        self.0.number(3, category as u64);
    }

    pub(super) fn called(&mut self, name: &str, category: Category) {
        self.0.text(23, name);
        self.0.number(3, category as u64);
    }

    /// Gives all slices of a category the same color.
    #[inline]
    pub(super) fn like(&mut self, category: Category) {
        self.0.number(52, category as u64);
    }

    /// A flow starts here.
    pub(super) fn starts(&mut self, flow: u64) {
        self.0.fixed64(47, flow);
    }

    /// A flow ends here.
    pub(super) fn receives(&mut self, flow: u64) {
        self.0.fixed64(48, flow);
    }

    fn argument(&mut self, key: Key, fill: impl FnOnce(&mut Message)) {
        self.0.message(ANNOTATION, |annotation| {
            annotation.number(1, key as u64);
            fill(annotation);
        });
    }

    pub(super) fn number(&mut self, key: Key, value: i64) {
        self.argument(key, |annotation| annotation.signed(4, value));
    }

    pub(super) fn seconds(&mut self, key: Key, value: f64) {
        self.argument(key, |annotation| annotation.double(5, value));
    }

    pub(super) fn text(&mut self, key: Key, value: &str) {
        self.argument(key, |annotation| annotation.text(6, value));
    }

    /// An argument with an interned text.
    pub(super) fn interned(&mut self, key: Key, number: u64) {
        self.argument(key, |annotation| annotation.number(17, number));
    }
}
