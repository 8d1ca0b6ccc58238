//! Prints what is known of traces besides events: `cargo run -p whywait-kineto --example facts traces/`.

#![allow(clippy::print_stdout)]

fn main() {
    let paths: Vec<std::path::PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let recording = whywait_kineto::open(&paths, &whywait_kineto::Options::default());
    match recording {
        Ok(recording) => {
            println!("{:#?}", recording.facts());
            for oddity in whywait_otf2::Recording::oddities(&recording) {
                println!("{}: {oddity}", oddity.kind.name());
            }
        }
        Err(error) => println!("{error}"),
    }
}
