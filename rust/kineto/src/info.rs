//! What a file says of its rank, besides events.

use whywait_devices::{Device, Group};

use crate::json::Value;
use crate::numbers::signed;

/// A process group of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessGroup {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) ranks: Vec<u32>,
}

impl ProcessGroup {
    /// As operations name it.
    pub(crate) fn group(&self) -> Group {
        let Self { name, description, ranks } = self.clone();
        Group { name, description, ranks: Some(ranks), size: None }
    }
}

/// What a file says of its rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct Info {
    /// Whether it is a file of PyTorch's profiler.
    pub(crate) has_schema: bool,
    pub(crate) rank: Option<u32>,
    pub(crate) world_size: Option<u32>,
    pub(crate) backend: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) devices: Vec<Device>,
    pub(crate) groups: Vec<ProcessGroup>,
    /// Nanoseconds to which times are relative.
    pub(crate) base: i64,
    /// Whether the file says so.
    pub(crate) has_base: bool,
    /// Versions of libraries and drivers, by name.
    pub(crate) versions: Vec<(String, String)>,
    /// What was recorded: stacks, shapes, memory, modules.
    pub(crate) recorded: Vec<&'static str>,
}

/// More ranks than any run has.
const MOST_RANKS: i64 = 1 << 20;

impl Info {
    pub(crate) fn read(metadata: &[(String, Vec<u8>)]) -> Self {
        let mut info = Self::default();
        // Of duplicate keys, the last counts.
        for (key, bytes) in metadata {
            let value = || Value::read(bytes);
            match key.as_str() {
                "schemaVersion" => info.has_schema = true,
                "baseTimeNanoseconds" => {
                    (info.base, info.has_base) = signed(bytes).map_or((0, false), |base| (base, true));
                }
                "host_name" => info.host = value().and_then(|host| Some(host.text()?.to_owned())),
                "deviceProperties" => info.devices = value().map(|list| devices(&list)).unwrap_or_default(),
                "distributedInfo" => {
                    if let Some(value) = value() {
                        info.distributed(&value);
                    }
                }
                "with_stack" => info.flag(bytes, "stacks"),
                "with_modules" => info.flag(bytes, "modules"),
                "record_shapes" => info.flag(bytes, "shapes"),
                "profile_memory" => info.flag(bytes, "memory"),
                _ if key.ends_with("_version") => {
                    if let Some(version) = value().and_then(|version| Some(version.text()?.to_owned())) {
                        info.versions.push((key.trim_end_matches("_version").to_owned(), version));
                    }
                }
                _ => {}
            }
        }
        info
    }

    fn flag(&mut self, bytes: &[u8], name: &'static str) {
        if matches!(bytes, b"1" | b"true") && !self.recorded.contains(&name) {
            self.recorded.push(name);
        }
    }

    fn distributed(&mut self, value: &Value) {
        let number = |key| {
            let number = value.get(key).and_then(Value::number)?;
            u32::try_from(number).ok().filter(|number| i64::from(*number) < MOST_RANKS)
        };
        self.rank = number("rank");
        self.world_size = number("world_size");
        self.backend = value.get("backend").and_then(|backend| Some(backend.text()?.to_owned()));
        if let Some(version) = value.get("nccl_version").and_then(Value::text) {
            self.versions.push(("nccl".to_owned(), version.to_owned()));
        }
        self.groups = value.get("pg_config").map(Value::list).unwrap_or_default().iter().filter_map(group).collect();
    }

    /// The group with this name.
    pub(crate) fn group(&self, name: &str) -> Option<&ProcessGroup> {
        self.groups.iter().find(|group| group.name == name)
    }
}

fn devices(list: &Value) -> Vec<Device> {
    let device = |value: Value| {
        let name = value.get("name").and_then(Value::text).unwrap_or_default().to_owned();
        Some(Device { number: value.get("id")?.number()?, name, identity: None })
    };
    list.list().into_iter().filter_map(device).collect()
}

fn group(value: &Value) -> Option<ProcessGroup> {
    let text = |key| value.get(key).and_then(Value::text).unwrap_or_default().to_owned();
    let rank = |rank: &Value| rank.number().filter(|rank| *rank < MOST_RANKS).and_then(|rank| u32::try_from(rank).ok());
    let ranks: Option<Vec<u32>> = value.get("ranks")?.list().iter().map(rank).collect();
    let mut ranks = ranks.filter(|ranks| !ranks.is_empty())?;
    ranks.dedup();
    Some(ProcessGroup { name: text("pg_name"), description: text("pg_desc"), ranks })
}
