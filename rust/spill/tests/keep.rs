//! Freed memory stays with the process as long as that is wanted.

const MIB: u64 = 1 << 20;

fn resident() -> u64 {
    whywait_spill::resident().expect("Linux says") / MIB
}

/// Takes 256 MiB in blocks, and frees them.
fn work() {
    let blocks: Vec<Vec<u8>> = (0..256).map(|_| vec![1; MIB as usize]).collect();
    assert!(blocks.iter().all(|block| block[77] == 1));
}

/// Not in a test's own thread: the heap of such a thread ends with the last block in it.
fn main() {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        // Other allocators have their own ways.
        return;
    }
    let before = resident();
    let (first, second) = (whywait_spill::keep(), whywait_spill::keep());
    work();
    assert!(resident() > before + 200, "{} MiB, {before} before", resident());
    drop(second);
    assert!(resident() > before + 200, "one still wants it: {} MiB", resident());
    drop(first);
    assert!(resident() < before + 50, "{} MiB, {before} before", resident());
    work();
    assert!(resident() < before + 100, "nobody wants it: {} MiB, {before} before", resident());
}
