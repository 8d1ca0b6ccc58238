//! Which processes start and end the library together: those that communicators join.

use crate::ids::ProcessId;
use crate::trace::DefinitionIndex;
use crate::trace::definition_index::Members;

/// The world of each process, by the first process in it. Where there are no two of several processes, it is one.
pub(crate) fn worlds(definitions: &DefinitionIndex) -> Vec<u32> {
    let count = definitions.processes.len();
    let one = vec![0; count];
    if definitions.comms.iter().any(|comm| comm.processes().is_some_and(|members| members.len() == count)) {
        return one;
    }
    let mut worlds = Worlds((0..count as u32).collect());
    for comm in &definitions.comms {
        match &*comm.members {
            Members::Processes(members) | Members::Some { members, .. } => worlds.join(members.iter()),
            Members::TwoGroups(a, b) => worlds.join(a.iter().chain(b)),
            Members::OwnProcess | Members::Locations(_) | Members::Unknown => {}
        }
    }
    let of: Vec<u32> = (0..count as u32).map(|process| worlds.first(process)).collect();
    let mut joined = (0..).zip(&of).filter(|(process, world)| process != *world).map(|(_, world)| *world);
    let several = joined.next().is_some_and(|world| joined.any(|other| other != world));
    if several { of } else { one }
}

/// For each process one before it in the same world, or itself.
struct Worlds(Vec<u32>);

impl Worlds {
    fn first(&mut self, mut process: u32) -> u32 {
        while self.0[process as usize] != process {
            let before = self.0[process as usize];
            self.0[process as usize] = self.0[before as usize];
            process = before;
        }
        process
    }

    fn join<'a>(&mut self, mut members: impl Iterator<Item = &'a ProcessId>) {
        let Some(one) = members.next() else { return };
        let mut first = self.first(one.number());
        for member in members {
            let other = self.first(member.number());
            self.0[first.max(other) as usize] = first.min(other);
            first = first.min(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_communicators_join_are_one_world() {
        let mut worlds = Worlds((0..6).collect());
        let processes = |numbers: &[u32]| numbers.iter().map(|number| ProcessId::new(*number)).collect::<Vec<_>>();
        worlds.join(processes(&[4, 3]).iter());
        worlds.join(processes(&[1, 0]).iter());
        worlds.join(processes(&[4, 5]).iter());
        worlds.join(processes(&[]).iter());
        let found: Vec<u32> = (0..6).map(|process| worlds.first(process)).collect();
        assert_eq!(found, [0, 0, 2, 3, 3, 3]);
    }
}
