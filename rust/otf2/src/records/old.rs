//! Numbers by which traces older than OTF2 1.2 describe regions and groups, and their equivalents in later traces.

use crate::enums::{GroupFlag, GroupType, GroupTypePre12, Paradigm, RegionFlag, RegionRole, RegionType};

impl GroupTypePre12 {
    /// The equivalent in later traces. The number 3 means regions in an old trace; newer writers use it otherwise.
    pub(super) const fn meaning(self) -> (GroupType, Paradigm) {
        match self {
            Self::LOCATIONS => (GroupType::LOCATIONS, Paradigm::UNKNOWN),
            Self::REGIONS | Self::METRIC => (GroupType::REGIONS, Paradigm::UNKNOWN),
            Self::COMM_GROUP => (GroupType::COMM_GROUP, Paradigm::MPI),
            Self::COMM_SELF => (GroupType::COMM_SELF, Paradigm::MPI),
            Self::COMM_LOCATIONS => (GroupType::COMM_LOCATIONS, Paradigm::MPI),
            _ => (GroupType::UNKNOWN, Paradigm::UNKNOWN),
        }
    }

    /// The value that writers store for old readers.
    pub fn of(group_type: GroupType, paradigm: Paradigm, flags: GroupFlag) -> Self {
        if flags != GroupFlag::NONE {
            return Self::UNKNOWN;
        }
        match (group_type, paradigm) {
            (GroupType::LOCATIONS, Paradigm::UNKNOWN) => Self::LOCATIONS,
            (GroupType::REGIONS, Paradigm::UNKNOWN) => Self::REGIONS,
            (GroupType::METRIC, Paradigm::UNKNOWN) => Self::METRIC,
            (GroupType::COMM_GROUP, Paradigm::MPI) => Self::COMM_GROUP,
            (GroupType::COMM_SELF, Paradigm::MPI) => Self::COMM_SELF,
            (GroupType::COMM_LOCATIONS, Paradigm::MPI) => Self::COMM_LOCATIONS,
            _ => Self::UNKNOWN,
        }
    }
}

/// Old region types and their equivalents in later traces.
const REGION_TYPES: [(RegionType, RegionRole, Paradigm, RegionFlag); 35] = {
    use Paradigm as P;
    use RegionFlag as F;
    use RegionRole as R;
    use RegionType as T;
    const DYNAMIC_PHASE: RegionFlag = RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0);
    [
        (T::FUNCTION, R::FUNCTION, P::UNKNOWN, F::NONE),
        (T::LOOP, R::LOOP, P::USER, F::NONE),
        (T::USER_REGION, R::FUNCTION, P::UNKNOWN, F::NONE),
        (T::FILE_IO, R::FILE_IO, P::USER, F::NONE),
        (T::OMP_PARALLEL, R::PARALLEL, P::OPENMP, F::NONE),
        (T::OMP_LOOP, R::LOOP, P::OPENMP, F::NONE),
        (T::OMP_SECTIONS, R::SECTIONS, P::OPENMP, F::NONE),
        (T::OMP_SECTION, R::SECTION, P::OPENMP, F::NONE),
        (T::OMP_WORKSHARE, R::WORKSHARE, P::OPENMP, F::NONE),
        (T::OMP_SINGLE, R::SINGLE, P::OPENMP, F::NONE),
        (T::OMP_MASTER, R::MASTER, P::OPENMP, F::NONE),
        (T::OMP_CRITICAL, R::CRITICAL, P::OPENMP, F::NONE),
        (T::OMP_ATOMIC, R::ATOMIC, P::OPENMP, F::NONE),
        (T::OMP_BARRIER, R::BARRIER, P::OPENMP, F::NONE),
        (T::OMP_IMPLICIT_BARRIER, R::IMPLICIT_BARRIER, P::OPENMP, F::NONE),
        (T::OMP_FLUSH, R::FLUSH, P::OPENMP, F::NONE),
        (T::OMP_CRITICAL_SBLOCK, R::CRITICAL_SBLOCK, P::OPENMP, F::NONE),
        (T::OMP_SINGLE_SBLOCK, R::SINGLE_SBLOCK, P::OPENMP, F::NONE),
        (T::OMP_WRAPPER, R::WRAPPER, P::OPENMP, F::NONE),
        (T::OMP_TASK, R::TASK, P::OPENMP, F::NONE),
        (T::OMP_TASK_WAIT, R::TASK_WAIT, P::OPENMP, F::NONE),
        (T::OMP_TASK_CREATE, R::TASK_CREATE, P::OPENMP, F::NONE),
        (T::OMP_ORDERED, R::ORDERED, P::OPENMP, F::NONE),
        (T::OMP_ORDERED_SBLOCK, R::ORDERED_SBLOCK, P::OPENMP, F::NONE),
        (T::MPI_COLL_BARRIER, R::BARRIER, P::MPI, F::NONE),
        (T::MPI_COLL_ONE2ALL, R::COLL_ONE2ALL, P::MPI, F::NONE),
        (T::MPI_COLL_ALL2ONE, R::COLL_ALL2ONE, P::MPI, F::NONE),
        (T::MPI_COLL_ALL2ALL, R::COLL_ALL2ALL, P::MPI, F::NONE),
        (T::MPI_COLL_OTHER, R::COLL_OTHER, P::MPI, F::NONE),
        (T::PHASE, R::CODE, P::USER, F::NONE),
        (T::DYNAMIC, R::CODE, P::USER, F::DYNAMIC),
        (T::DYNAMIC_PHASE, R::CODE, P::USER, DYNAMIC_PHASE),
        (T::DYNAMIC_FUNCTION, R::FUNCTION, P::USER, F::DYNAMIC),
        (T::DYNAMIC_LOOP, R::LOOP, P::USER, F::DYNAMIC),
        (T::DYNAMIC_LOOP_PHASE, R::LOOP, P::USER, DYNAMIC_PHASE),
    ]
};

impl RegionType {
    /// The equivalent in later traces.
    pub(super) fn meaning(self) -> (RegionRole, Paradigm, RegionFlag) {
        REGION_TYPES
            .iter()
            .find(|(old, ..)| *old == self)
            .map_or((RegionRole::UNKNOWN, Paradigm::UNKNOWN, RegionFlag::NONE), |(_, role, paradigm, flags)| {
                (*role, *paradigm, *flags)
            })
    }

    /// The value that writers store for old readers.
    pub fn of(role: RegionRole, paradigm: Paradigm, flags: RegionFlag) -> Self {
        match (role, paradigm) {
            (RegionRole::FUNCTION, Paradigm::UNKNOWN | Paradigm::COMPILER) => Self::FUNCTION,
            (RegionRole::CODE, Paradigm::USER) if flags == RegionFlag::NONE => Self::FUNCTION,
            (RegionRole::CODE, Paradigm::USER) if flags == RegionFlag::PHASE => Self::PHASE,
            (RegionRole::FUNCTION, Paradigm::USER) if !flags.contains(RegionFlag::DYNAMIC) => Self::USER_REGION,
            _ => REGION_TYPES
                .iter()
                .find(|(_, r, p, f)| (*r, *p, *f) == (role, paradigm, flags))
                .map_or(Self::UNKNOWN, |(old, ..)| *old),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_for_old_readers_means_the_same() {
        // A phase of an old trace loses its flag, and code without flags becomes a function.
        let kept = |entry: &&(RegionType, RegionRole, Paradigm, RegionFlag)| entry.0 != RegionType::PHASE;
        for (old, role, paradigm, flags) in REGION_TYPES.iter().filter(kept).copied() {
            let left = RegionType::of(role, paradigm, flags);
            assert_eq!(left.meaning(), (role, paradigm, flags), "{old:?}");
        }
        let of = |role| RegionType::of(role, Paradigm::MPI, RegionFlag::NONE);
        assert_eq!(of(RegionRole::COLL_ALL2ALL), RegionType::MPI_COLL_ALL2ALL);
        assert_eq!(of(RegionRole::POINT2POINT), RegionType::UNKNOWN);
    }

    #[test]
    fn groups_of_old_traces() {
        let mpi = |kind| (kind, Paradigm::MPI);
        assert_eq!(GroupTypePre12(4).meaning(), mpi(GroupType::COMM_GROUP));
        assert_eq!(GroupTypePre12(6).meaning(), mpi(GroupType::COMM_LOCATIONS));
        assert_eq!(GroupTypePre12(3).meaning(), (GroupType::REGIONS, Paradigm::UNKNOWN));
        let of = |flags| GroupTypePre12::of(GroupType::COMM_SELF, Paradigm::MPI, flags);
        assert_eq!(of(GroupFlag::NONE), GroupTypePre12::COMM_SELF);
        assert_eq!(of(GroupFlag::GLOBAL_MEMBERS), GroupTypePre12::UNKNOWN);
    }
}
