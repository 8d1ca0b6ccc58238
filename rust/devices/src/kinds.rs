//! Kinds of communication, by the names that libraries and the profiler give them.

use whywait_otf2::enums::{CollectiveOp, RegionRole};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// All contribute, all get the result.
    AllReduce,
    /// All get what each has.
    AllGather,
    /// All contribute, each gets a part of the result.
    ReduceScatter,
    /// Each has something for each.
    AllToAll,
    /// Nobody goes on before all are there.
    Barrier,
    /// The root's data to all.
    Broadcast,
    /// A part of the root's data to each.
    Scatter,
    /// All contribute, the root gets the result.
    Reduce,
    /// The root gets what each has.
    Gather,
    /// To one other.
    Send,
    /// From one other.
    Receive,
    /// Communication whose name says nothing: as if all needed all.
    Other,
}

/// Who needs whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// All need all.
    AllToAll,
    /// All need the root.
    OneToAll,
    /// The root needs all.
    AllToOne,
    /// One needs another.
    Message,
}

impl Kind {
    /// The words of names, in the order in which they are looked for: some contain others.
    const WORDS: [(&str, Self); 14] = [
        ("allreduce", Self::AllReduce),
        ("allgather", Self::AllGather),
        ("reducescatter", Self::ReduceScatter),
        ("alltoall", Self::AllToAll),
        ("barrier", Self::Barrier),
        ("broadcast", Self::Broadcast),
        ("scatter", Self::Scatter),
        ("reduce", Self::Reduce),
        ("gather", Self::Gather),
        ("irecv", Self::Receive),
        ("isend", Self::Send),
        ("recv", Self::Receive),
        ("sendrecv", Self::Other),
        ("send", Self::Send),
    ];

    /// The kind of an operation by its name: `allreduce`, `_allgather_base`, `all_to_allv`, `reduce_scatter_tensor_coalesced`.
    pub fn of_operation(name: &str) -> Option<Self> {
        let name = plain(name);
        // A manager that coalesces what follows, and the calls that only wait or prepare, name no operation.
        Self::WORDS.iter().find(|(word, _)| name.starts_with(word)).map(|(_, kind)| *kind)
    }

    /// The kind of a kernel by its name, if it is one of a communication library.
    pub fn of_kernel(name: &str) -> Option<Self> {
        let name = name.strip_prefix("void ").unwrap_or(name);
        let head = name.get(..4).unwrap_or_default().to_ascii_lowercase();
        let lower = || name.split('(').next().unwrap_or_default().to_ascii_lowercase();
        let is_library = head == "nccl" || head == "rccl";
        let rest = if is_library {
            lower()
        } else {
            let lower = lower();
            if lower.contains("cross_device_reduce") {
                return Some(Self::AllReduce);
            }
            let known = ["multimem_", "oneccl", "hcom_", "hccl"];
            known.iter().any(|part| lower.contains(part)).then_some(lower)?
        };
        let rest = plain(&rest);
        if rest.contains("sendrecv") {
            return Some(Self::Other);
        }
        Some(Self::WORDS.iter().find(|(word, _)| rest.contains(word)).map_or(Self::Other, |(_, kind)| *kind))
    }

    /// The kind that a user names: `allreduce`, `send`, `other`.
    pub fn named(name: &str) -> Option<Self> {
        if name == "other" { Some(Self::Other) } else { Self::of_operation(name) }
    }

    /// Who needs whom in it.
    pub const fn flow(self) -> Flow {
        match self {
            Self::Broadcast | Self::Scatter => Flow::OneToAll,
            Self::Reduce | Self::Gather => Flow::AllToOne,
            Self::Send | Self::Receive => Flow::Message,
            _ => Flow::AllToAll,
        }
    }

    /// The kind of an operation whose members are known as these: one may be known by its kernel's name only.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Self::Other, kind) | (kind, Self::Other) if !kind.is_message() => Some(kind),
            // Libraries do a barrier by a reduction.
            (Self::AllReduce, Self::Barrier) | (Self::Barrier, Self::AllReduce) => Some(Self::Barrier),
            _ => None,
        }
    }

    /// Whether it is between two.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Send | Self::Receive)
    }

    /// The role of its region.
    pub const fn role(self) -> RegionRole {
        match self {
            Self::Barrier => RegionRole::BARRIER,
            Self::Broadcast | Self::Scatter => RegionRole::COLL_ONE2ALL,
            Self::Reduce | Self::Gather => RegionRole::COLL_ALL2ONE,
            Self::Send | Self::Receive => RegionRole::POINT2POINT,
            Self::Other => RegionRole::COLL_OTHER,
            _ => RegionRole::COLL_ALL2ALL,
        }
    }

    /// The operation of its records.
    pub const fn operation(self) -> CollectiveOp {
        match self {
            Self::AllReduce => CollectiveOp::ALLREDUCE,
            Self::AllGather => CollectiveOp::ALLGATHER,
            Self::ReduceScatter => CollectiveOp::REDUCE_SCATTER,
            Self::Barrier => CollectiveOp::BARRIER,
            Self::Broadcast => CollectiveOp::BCAST,
            Self::Scatter => CollectiveOp::SCATTER,
            Self::Reduce => CollectiveOp::REDUCE,
            Self::Gather => CollectiveOp::GATHER,
            _ => CollectiveOp::ALLTOALL,
        }
    }

    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Scatter => "scatter",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Send => "send",
            Self::Receive => "recv",
            Self::Other => "other",
        }
    }
}

/// A name in lower case without underscores.
fn plain(name: &str) -> String {
    name.chars().filter(|character| *character != '_').map(|character| character.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_kinds() {
        for (name, kind) in [
            ("allreduce", Some(Kind::AllReduce)),
            ("all_reduce", Some(Kind::AllReduce)),
            ("_allgather_base", Some(Kind::AllGather)),
            ("allgather_into_tensor_coalesced", Some(Kind::AllGather)),
            ("_reduce_scatter_base", Some(Kind::ReduceScatter)),
            ("reduce_scatter_tensor_coalesced", Some(Kind::ReduceScatter)),
            ("all_to_allv", Some(Kind::AllToAll)),
            ("alltoall_base", Some(Kind::AllToAll)),
            ("Broadcast", Some(Kind::Broadcast)),
            ("reduce_", Some(Kind::Reduce)),
            ("recv_any_source", Some(Kind::Receive)),
            ("send", Some(Kind::Send)),
            ("wait", None),
            ("init", None),
            ("coalesced", None),
        ] {
            assert_eq!(Kind::of_operation(name), kind, "{name}");
        }
        for (name, kind) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Some(Kind::AllReduce)),
            ("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclDevComm*)", Some(Kind::ReduceScatter)),
            ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", Some(Kind::Other)),
            ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", Some(Kind::Other)),
            ("ncclBroadcastRingLLKernel_copy_i8(ncclColl)", Some(Kind::Broadcast)),
            ("void vllm::cross_device_reduce_1stage<float, 8>(RankData*)", Some(Kind::AllReduce)),
            ("multimem_all_reduce_kernel", Some(Kind::AllReduce)),
            ("reduce_kernel", None),
            ("layernorm_grads_all_reduce_kernel", None),
            ("nc", None),
        ] {
            assert_eq!(Kind::of_kernel(name), kind, "{name}");
        }
    }
}
