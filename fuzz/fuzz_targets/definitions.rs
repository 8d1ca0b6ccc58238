//! Any bytes as definition files, global and local, in chunks of a small size that the first byte chooses.

#![no_main]

use std::hint::black_box;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whywait_otf2::{Definitions, LocalDefinitions, LocationReader};

fuzz_target!(|bytes: &[u8]| {
    let Some((chunk, file)) = bytes.split_first() else { return };
    let chunk_size = 19 + 16 * u64::from(*chunk);
    match Definitions::from_bytes(Path::new("traces.def"), file.to_vec(), chunk_size) {
        Ok((definitions, oddities)) => {
            for definition in definitions.iter() {
                definition.visit(&mut |name, value| {
                    black_box((name, value));
                });
            }
            for comm in &definitions.comms {
                black_box((definitions.comm_group(comm.group), definitions.string(comm.name)));
            }
            black_box(oddities);
        }
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= file.len() as u64)),
    }
    match LocalDefinitions::from_bytes(Path::new("0.def"), file.to_vec(), chunk_size) {
        Ok((local, _)) => {
            black_box(LocationReader::from_bytes(Path::new("0.evt"), Vec::new(), chunk_size, local));
        }
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= file.len() as u64)),
    }
});
