//! Small traces written by the test: call paths, launches, steps, cycles, and what users add.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use whywait_devices::{DeviceRecording, WINDOW_BEGIN, WINDOW_END};
use whywait_kineto::{Options, Paths, open};
use whywait_otf2::enums::{LocationType, RegionFlag, Type};
use whywait_otf2::{Attributes, Event, EventSink, Recording};

/// A directory that goes away.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whywait-kineto-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, head: &str, events: &[String]) {
        let text = format!("{{\"schemaVersion\": 1, {head}, \"traceEvents\": [{}]}}", events.join(",\n"));
        std::fs::write(self.0.join(file), text).unwrap();
    }

    fn open(&self, options: &Options) -> DeviceRecording {
        open(std::slice::from_ref(&self.0), options).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn info(rank: u32, size: u32) -> String {
    format!(r#""distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {size}}}"#)
}

fn span(category: &str, name: &str, (begin, end): (u32, u32), arguments: &str) -> String {
    let length = end - begin;
    format!(
        r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 2, "ts": {begin}, "dur": {length}, "args": {{{arguments}}}}}"#
    )
}

fn kernel(name: &str, (begin, end): (u32, u32), stream: u32, correlation: u32) -> String {
    let length = end - begin;
    format!(
        r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream}, "ts": {begin}, "dur": {length}, "args": {{"device": 0, "stream": {stream}, "correlation": {correlation}}}}}"#
    )
}

/// Lines of what happens on the locations of one type, by depth, with attributes and parameters.
struct Printer<'a> {
    recording: &'a DeviceRecording,
    text: String,
    depth: usize,
    attributes: String,
}

impl Printer<'_> {
    /// The call path of a context.
    fn context(&self, id: u64) -> String {
        let definitions = self.recording.definitions();
        let mut names = Vec::new();
        let mut next = definitions.calling_context(id as u32);
        while let Some(context) = next {
            names.push(definitions.string(definitions.region(context.region).unwrap().name));
            next = definitions.calling_context(context.parent);
        }
        names.reverse();
        names.join("/")
    }
}

impl EventSink for Printer<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        let definitions = self.recording.definitions();
        let name = definitions.string(definitions.region(region).unwrap().name);
        let attributes = std::mem::take(&mut self.attributes);
        let depth = self.depth;
        let _ = writeln!(self.text, "{:depth$}{name} {}{attributes}", "", time / 1000);
        self.depth += 1;
    }

    fn leave(&mut self, _: i64, _: u32) {
        self.depth -= 1;
    }

    fn record(&mut self, _: i64, record: &Event<'_>, _: &Attributes<'_>) {
        if let Event::ParameterInt { value, .. } = record {
            self.text.truncate(self.text.len() - 1);
            let _ = writeln!(self.text, " #{value}");
        }
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        for attribute in attributes {
            let definitions = self.recording.definitions();
            let name = definitions.string(definitions.attribute(attribute.id).unwrap().name);
            let bits = attribute.value.bits;
            let value =
                if attribute.value.kind == Type::CALLING_CONTEXT { self.context(bits) } else { bits.to_string() };
            let _ = write!(self.attributes, " {name}={value}");
        }
    }
}

fn printed(recording: &DeviceRecording, kind: LocationType) -> String {
    let mut printer = Printer { recording, text: String::new(), depth: 0, attributes: String::new() };
    for location in recording.definitions().locations.iter().filter(|location| location.location_type == kind) {
        let _ = recording.events(location.id).unwrap().read(&mut Vec::new(), &mut printer).unwrap();
    }
    printer.text
}

/// Forward and backward pass of a module, with Python frames; the backward pass on a thread of its own.
fn training() -> Vec<String> {
    let backward =
        |name: &str, times, arguments: &str| span("cpu_op", name, times, arguments).replace("\"tid\": 2", "\"tid\": 3");
    vec![
        span("user_annotation", "ProfilerStep#7", (0, 9000), ""),
        span("python_function", "train.py(3): main", (10, 8900), ""),
        span("python_function", "torch/nn/modules/module.py(1): _call_impl", (20, 1000), ""),
        span("python_function", "nn.Module: Linear_0", (30, 900), ""),
        span("cpu_op", "aten::linear", (100, 800), r#""Sequence number": 5"#),
        span("cuda_runtime", "cudaLaunchKernel", (200, 210), r#""correlation": 11"#),
        span("python_function", "<built-in function sleep>", (2000, 2500), ""),
        span("python_function", "<built-in function len>", (2600, 2610), ""),
        backward(
            "autograd::engine::evaluate_function: AddmmBackward0",
            (3000, 4000),
            r#""Sequence number": 5, "Fwd thread id": 1"#,
        ),
        backward("AddmmBackward0", (3100, 3900), r#""Sequence number": 5, "Fwd thread id": 1"#),
        span("cuda_runtime", "cudaLaunchKernel", (3200, 3210), r#""correlation": 12"#)
            .replace("\"tid\": 2", "\"tid\": 3"),
        kernel("void gemm<float>(float*)", (300, 400), 7, 11),
        kernel("gemm_backward", (3300, 3400), 7, 12),
    ]
}

#[test]
fn call_paths_have_what_users_know() {
    let directory = Directory::new("paths");
    directory.write("rank0.json", &info(0, 1), &training());
    let hosts = |paths| printed(&directory.open(&Options { paths, ..Options::default() }), LocationType::CPU_THREAD);
    assert_eq!(
        hosts(Paths::Module),
        "ProfilerStep 0 #7\n train.py(3): main 10\n  nn.Module: Linear 30\n   aten::linear 100\n    cudaLaunchKernel 200 \
         correlation=11\n  <built-in function sleep> 2000\nbackward 3000\n nn.Module: Linear 3000\n  AddmmBackward0 3000\n   \
         cudaLaunchKernel 3200 correlation=12\n"
    );
    assert_eq!(
        hosts(Paths::Op),
        "ProfilerStep 0 #7\n aten::linear 100\n  cudaLaunchKernel 200 correlation=11\nAddmmBackward0 3000\n cudaLaunchKernel \
         3200 correlation=12\n"
    );
    assert_eq!(hosts(Paths::Python).lines().count(), hosts(Paths::Module).lines().count() + 2);
}

#[test]
fn work_is_below_the_path_of_its_launch() {
    let directory = Directory::new("launches");
    directory.write("rank0.json", &info(0, 1), &training());
    let recording = directory.open(&Options::default());
    assert_eq!(
        printed(&recording, LocationType::ACCELERATOR_STREAM),
        "gemm 300 correlation=11 launch path=ProfilerStep/train.py(3): main/nn.Module: Linear/aten::linear\ngemm_backward 3300 \
         correlation=12 launch path=backward/nn.Module: Linear/AddmmBackward0\n"
    );
    let definitions = recording.definitions();
    let step = definitions.regions.iter().find(|region| definitions.string(region.name) == "ProfilerStep").unwrap();
    assert_eq!(step.region_flags, RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0));
    let all = directory.open(&Options { paths: Paths::All, ..Options::default() });
    assert!(printed(&all, LocationType::ACCELERATOR_STREAM).starts_with("void gemm<float>(float*) 300"));
}

#[test]
fn synchronizations_name_streams_and_events() {
    let directory = Directory::new("syncs");
    let sync = r#"{"ph": "X", "cat": "cuda_sync", "name": "cudaStreamWaitEvent", "pid": 0, "tid": -1, "ts": 51, "dur": 1, "args":
        {"device": 0, "stream": 7, "correlation": 2, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1}}"#;
    let events = vec![
        span("cuda_runtime", "cudaEventRecord", (40, 45), r#""correlation": 1"#),
        span("cuda_runtime", "cudaStreamWaitEvent", (50, 55), r#""correlation": 2"#),
        sync.to_owned(),
        kernel("a", (60, 70), 7, 3),
        kernel("b", (60, 70), 20, 4),
    ];
    directory.write("rank0.json", &info(0, 1), &events);
    let recording = directory.open(&Options::default());
    let streams: Vec<u64> = recording.definitions().locations.iter().map(|location| location.id).skip(1).collect();
    let [seven, twenty] = streams[..] else { panic!("two streams") };
    assert_eq!(
        printed(&recording, LocationType::CPU_THREAD),
        format!(
            "cudaEventRecord 40 correlation=1 CUDA_STREAM_REF={twenty} CUDA_EVENT_REF=1\ncudaStreamWaitEvent 50 correlation=2 \
             CUDA_STREAM_REF={seven} CUDA_EVENT_REF=1\n"
        )
    );
}

/// One operation without metadata on each of two ranks, in a window that begins at a time.
fn run(directory: &Directory, file: &str, rank: u32, begin: u32, name: &str) {
    let events = vec![
        span("user_annotation", "work", (begin, begin + 1000), ""),
        kernel(name, (begin + 100 + rank * 50, begin + 300), 7, 1),
    ];
    directory.write(file, &info(rank, 2), &events);
}

#[test]
fn a_cycle_of_the_schedule_is_one_run() {
    let directory = Directory::new("cycles");
    for (cycle, begin) in [(0, 0), (1, 5000), (2, 10_000)] {
        for rank in 0..2 {
            run(&directory, &format!("node_{rank}.{cycle}.pt.trace.json"), rank, begin, "ncclDevKernel_AllReduce_Sum");
        }
    }
    let begin = |cycle| directory.open(&Options { cycle, ..Options::default() }).facts().ranks[0].window.0;
    assert_eq!((begin(None), begin(Some(1)), begin(Some(3))), (10_000_000, 0, 10_000_000));
    let facts = directory.open(&Options::default()).facts().clone();
    let recording = directory.open(&Options::default());
    let definitions = recording.definitions();
    let window = |name: &str| {
        let properties = definitions.location_group_properties.iter();
        let mut named = properties.filter(|property| definitions.string(property.name) == name);
        named.next().unwrap().value.bits
    };
    assert_eq!((window(WINDOW_BEGIN), window(WINDOW_END)), (10_000_000, 11_000_000));
    assert_eq!((facts.cycles, facts.cycle, facts.groups[0].instances), (3, 3, 1));
    assert_eq!(facts.ranks[1].host.as_deref(), Some("node"));
    let error =
        open(std::slice::from_ref(&directory.0), &Options { cycle: Some(4), ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains("no cycle 4 of 3"), "{error}");
}

#[test]
fn a_rank_that_is_listed_twice_is_one_member() {
    let directory = Directory::new("twice");
    let described =
        r#""Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 0]", "Seq": 1,"#;
    for rank in 0..2 {
        let event = kernel("ncclDevKernel_AllReduce_Sum", (100 + rank, 200), 7, 1);
        let event = event.replace(r#""device": 0,"#, &format!(r#"{described} "device": 0,"#));
        directory.write(&format!("rank{rank}.json"), &info(rank, 2), &[event]);
    }
    let facts = directory.open(&Options::default()).facts().clone();
    assert_eq!((facts.groups[0].instances, facts.groups[0].unmatched, facts.groups[0].known), (1, 0, 2));
}

#[test]
fn processes_that_communicate_have_a_device_each() {
    let devices = |name: &str| {
        let directory = Directory::new("devices");
        for rank in 0..2 {
            run(&directory, &format!("rank{rank}.json"), rank, 0, name);
        }
        let recording = directory.open(&Options::default());
        let definitions = recording.definitions();
        let uuids = definitions.system_tree_node_properties.iter();
        uuids.map(|property| definitions.string(property.string_value).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(devices("gemm"), ["node/0"]);
    assert_eq!(devices("ncclDevKernel_AllReduce_Sum"), ["node/0 of rank 0", "node/0 of rank 1"]);
}

#[test]
fn launches_before_the_window_keep_the_order_of_the_stream() {
    let directory = Directory::new("order");
    // Of rank 1, the first launch is before its window; the second is long before the first kernel begins.
    for rank in 0..2 {
        let mut events = vec![
            span("cuda_runtime", "cudaLaunchKernel", (110, 115), r#""correlation": 2"#),
            kernel("ncclDevKernel_AllGather_RING", (400 + rank, 480), 7, 1),
            kernel("ncclDevKernel_AllReduce_Sum", (500 + rank, 600), 7, 2),
        ];
        if rank == 0 {
            events.push(span("cuda_runtime", "cudaLaunchKernel", (100, 105), r#""correlation": 1"#));
        }
        directory.write(&format!("rank{rank}.json"), &info(rank, 2), &events);
    }
    let facts = directory.open(&Options::default()).facts().clone();
    assert_eq!((facts.groups[0].instances, facts.groups[0].unmatched), (2, 0));
}

#[test]
fn work_that_runs_over_the_next_ends_there_on_devices_of_amd() {
    let directory = Directory::new("amd");
    let events = [
        span("cuda_runtime", "hipLaunchKernel", (0, 5), r#""correlation": 1"#),
        kernel("a", (10, 100), 7, 1),
        kernel("b", (30, 40), 7, 2),
    ];
    directory.write("rank0.json", &info(0, 1), &events);
    let recording = directory.open(&Options::default());
    assert_eq!(recording.oddities().len(), 1);
    // Nothing is within another.
    assert_eq!(printed(&recording, LocationType::ACCELERATOR_STREAM), "a 10 correlation=1\nb 30 correlation=2\n");
}

#[test]
fn a_file_may_be_of_several_compressed_parts() {
    let directory = Directory::new("parts");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kineto/chain/traces");
    for rank in 0..4 {
        let file = format!("rank{rank}.pt.trace.json.gz");
        let mut text = Vec::new();
        let packed = std::fs::File::open(source.join(&file)).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text).unwrap();
        let mut parts = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let cut = text.len() * (rank + 1) / 6;
        parts.write_all(&text[..cut]).unwrap();
        let mut all = parts.finish().unwrap();
        let mut rest = flate2::write::GzEncoder::new(&mut all, flate2::Compression::best());
        rest.write_all(&text[cut..]).unwrap();
        rest.finish().unwrap();
        std::fs::write(directory.0.join(file), all).unwrap();
    }
    let whole = open(&[source], &Options::default()).unwrap();
    let parts = directory.open(&Options::default());
    assert_eq!(parts.oddities(), []);
    assert_eq!(whole.facts().groups, parts.facts().groups);
    let events = |recording: &DeviceRecording| printed(recording, LocationType::ACCELERATOR_STREAM);
    assert_eq!(events(&whole), events(&parts));
}

#[test]
fn users_name_kernels_that_communicate() {
    let directory = Directory::new("kernels");
    for rank in 0..2 {
        run(&directory, &format!("rank{rank}.json"), rank, 0, "my_fast_sum<float>(x)");
    }
    assert_eq!(directory.open(&Options::default()).facts().groups, []);
    let mut options = Options::default();
    options.kernels.add("my_.*sum=all_reduce").unwrap();
    assert_eq!(directory.open(&options).facts().groups[0].instances, 1);
    for wrong in ["my_sum", "(=all_reduce", "my_sum=nothing"] {
        assert!(options.kernels.add(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ranks_may_be_in_directories_of_their_own() {
    let directory = Directory::new("nested");
    for rank in 0..2 {
        let inner = Directory(directory.0.join(format!("rank_{rank}")));
        std::fs::create_dir(&inner.0).unwrap();
        let events = [kernel("ncclDevKernel_AllReduce_Sum", (100, 200), 7, 1)];
        inner.write("trace.json", r#""displayTimeUnit": "ms""#, &events);
        std::mem::forget(inner);
    }
    let recording = directory.open(&Options::default());
    let ranks: Vec<u32> = recording.facts().ranks.iter().map(|rank| rank.rank).collect();
    assert_eq!((ranks, recording.facts().groups[0].instances), (vec![0, 1], 1));
    assert_eq!(recording.path(), Path::new(&directory.0));
}

#[test]
fn times_that_cannot_be_are_left_out() {
    let directory = Directory::new("extreme");
    let times =
        ["-4611686018427387.904", "4611686018427387.904", "2305843009213693", "-2305843009213693", "1e15", "0", "5"];
    let event = |(number, time): (usize, &&str)| {
        let (number, end) = (number + 1, times[number % 3]);
        let works = kernel("ncclDevKernel_AllReduce_Sum", (1, 2), 7, number as u32);
        let host = span("cuda_runtime", "cudaLaunchKernel", (1, 2), &format!("\"correlation\": {number}"));
        [works, host].map(|event| {
            event.replace("\"ts\": 1,", &format!("\"ts\": {time},")).replace("\"dur\": 1,", &format!("\"dur\": {end},"))
        })
    };
    let events: Vec<String> = times.iter().enumerate().flat_map(event).collect();
    for base in ["0", "1700000000000000000", "9223372036854775807", "-9223372036854775808"] {
        for rank in 0..2 {
            let head = format!("{}, \"baseTimeNanoseconds\": {base}", info(rank, 2));
            directory.write(&format!("rank{rank}.json"), &head, &events);
        }
        if let Ok(recording) = open(std::slice::from_ref(&directory.0), &Options::default()) {
            let _ =
                printed(&recording, LocationType::CPU_THREAD) + &printed(&recording, LocationType::ACCELERATOR_STREAM);
        }
    }
}

#[test]
fn other_traces_of_the_same_format_are_refused() {
    let directory = Directory::new("chrome");
    let event = r#"{"ph": "B", "cat": "v8", "name": "x", "ts": 1}"#;
    std::fs::write(directory.0.join("trace.json"), format!("{{\"traceEvents\": [{event}]}}")).unwrap();
    let error = open(std::slice::from_ref(&directory.0), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("not of the PyTorch profiler"), "{error}");
}

/// A call of `c10d`, and the operation that lies across its end.
fn message(kind: &str, peer: u32, (begin, end, done): (u32, u32, u32)) -> [String; 2] {
    let name = if kind == "send" { "c10d::send" } else { "c10d::recv_" };
    let inputs = format!(r#""Concrete Inputs": ["", "", "{peer}", "0"]"#);
    let dimensions = r#""Input Dims": [[100]], "Input type": ["float"]"#;
    [
        span("cpu_op", name, (begin, end), &inputs),
        span("user_annotation", &format!("gloo:{kind}"), (begin + 2, done), dimensions),
    ]
}

#[test]
fn messages_that_do_not_block_complete_in_a_gap() {
    let directory = Directory::new("messages");
    for rank in 0..2 {
        let late = 100 * rank;
        let mut events = vec![span("user_annotation", "work", (0, 10 + late), "")];
        events.extend(message("recv", 1 - rank, (late + 20, late + 25, 180)));
        events.extend(message("send", 1 - rank, (late + 30, late + 35, late + 60)));
        events.push(span("user_annotation", "more", (200, 300), ""));
        directory.write(&format!("rank{rank}.json"), &info(rank, 2), &events);
    }
    let recording = directory.open(&Options::default());
    assert_eq!(recording.facts().groups[0].messages, 2);
    let mut records = Records::default();
    let _ = recording.events(0).unwrap().read(&mut Vec::new(), &mut records).unwrap();
    assert_eq!(
        records.0,
        [(20, "MpiIrecvRequest".to_owned()), (30, "MpiSend".to_owned()), (200, "MpiIrecv".to_owned()),]
    );
}

/// Times in microseconds and names of records.
#[derive(Default)]
struct Records(Vec<(i64, String)>);

impl EventSink for Records {
    fn enter(&mut self, _: i64, _: u32) {}

    fn leave(&mut self, _: i64, _: u32) {}

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        self.0.push((time / 1000, Event::name_of(record.id()).to_owned()));
    }
}

fn memory(time: u32, device: i32, allocated: u32) -> String {
    let kind = i32::from(device >= 0);
    format!(
        r#"{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": {time}, "args":
        {{"Total Reserved": 4096, "Total Allocated": {allocated}, "Bytes": 8, "Device Id": {device}, "Device Type": {kind}}}}}"#
    )
}

#[test]
fn memory_in_use_is_a_counter() {
    let directory = Directory::new("memory");
    let mut events = vec![memory(30, 0, 200), span("cpu_op", "a", (10, 20), ""), memory(15, 0, 100), memory(16, -1, 5)];
    directory.write("rank0.json", &info(0, 1), &events);
    let records = |options: &Options| {
        let recording = directory.open(options);
        let mut records = Records::default();
        let _ = recording.events(0).unwrap().read(&mut Vec::new(), &mut records).unwrap();
        let definitions = recording.definitions();
        let names = definitions.metric_members.iter().map(|member| definitions.string(member.name).to_owned());
        (records.0, names.collect::<Vec<_>>(), recording.oddities().len())
    };
    let (found, names, _) = records(&Options::default());
    let metric = |time| (time, "Metric".to_owned());
    assert_eq!(found, [metric(15), metric(16), metric(30)]);
    let of = |device| [format!("memory allocated:{device}"), format!("memory reserved:{device}")];
    assert_eq!(names, [of("host"), of("device=0")].concat());
    // Many are read only if they are asked for, and never in part.
    events.extend((0..10_000).map(|at| memory(40 + at, 0, at)));
    directory.write("rank0.json", &info(0, 1), &events);
    let (found, names, oddities) = records(&Options::default());
    assert_eq!((found, names, oddities), (Vec::new(), Vec::new(), 1));
    let (found, _, oddities) = records(&Options { memory: true, ..Options::default() });
    assert_eq!((found.len(), oddities), (10_003, 0));
}
