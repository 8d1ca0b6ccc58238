//! Names: each distinct one is stored and looked at once.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::json::decoded;

/// What the name of a host's span says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing special.
    Plain,
    /// A step of the training loop.
    Step(i64),
    /// The part of a step that a record has, see [`crate::steps::add_parts`].
    PartOfStep,
    /// What describes a communication call.
    Communication,
    /// A call of `c10d`, which issues an operation.
    Issue,
    /// An operation of a library for CPUs.
    HostOperation,
    /// An operation of a library for devices.
    DeviceOperation,
    /// A frame of a module.
    Module,
    /// A frame of the user's own code.
    OwnFrame,
    /// A frame of a library, the interpreter, or compiled code.
    OtherFrame,
}

/// The modules of Python's standard library.
static STANDARD: LazyLock<FxHashSet<&str>> = LazyLock::new(|| include_str!("stdlib.txt").split_whitespace().collect());

/// The name of a part of a step.
pub(crate) const PART_OF_STEP: &str = "ProfilerStep";

impl Meaning {
    fn of(name: &str) -> Self {
        if name == PART_OF_STEP {
            return Self::PartOfStep;
        }
        if let Some(number) = name.strip_prefix("ProfilerStep#") {
            return number.parse().map_or(Self::Plain, Self::Step);
        }
        if name == "record_param_comms" {
            return Self::Communication;
        }
        if name.starts_with("c10d::") {
            return Self::Issue;
        }
        if ["gloo:", "mpi:", "ucc:"].iter().any(|library| name.starts_with(library)) {
            return Self::HostOperation;
        }
        if ["nccl:", "rccl:", "xccl:", "hccl:"].iter().any(|library| name.starts_with(library)) {
            return Self::DeviceOperation;
        }
        if name.starts_with("nn.Module: ") {
            return Self::Module;
        }
        if is_own_frame(name) { Self::OwnFrame } else { Self::OtherFrame }
    }
}

/// Whether a Python frame, as in `path/file.py(12): function`, is neither of PyTorch nor of the interpreter.
fn is_own_frame(name: &str) -> bool {
    let Some((path, _)) = name.split_once(".py(") else { return false };
    if path.starts_with('<') {
        return false;
    }
    // What is below the directory of installed packages, or of the standard library.
    let (path, is_installed) = match path.rsplit_once("site-packages/").or_else(|| path.rsplit_once("dist-packages/")) {
        Some((_, rest)) => (rest, true),
        None => (path, false),
    };
    if !is_installed && path.split('/').any(|part| part.starts_with("python3.")) {
        return false;
    }
    let first = path.split('/').next().unwrap_or_default();
    first != "torch" && !STANDARD.contains(first)
}

/// Names by number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_bytes: FxHashMap<Box<[u8]>, u32>,
    list: Vec<String>,
    meanings: Vec<Meaning>,
}

impl Names {
    /// The number of the name with this content of a JSON string.
    #[inline]
    pub(crate) fn id(&mut self, content: &[u8]) -> u32 {
        if let Some(id) = self.by_bytes.get(content) {
            return *id;
        }
        let text = decoded(content);
        let id = self.list.len() as u32;
        self.meanings.push(Meaning::of(&text));
        self.list.push(text);
        self.by_bytes.insert(content.into(), id);
        id
    }

    /// A name, as it is in the file.
    pub(crate) fn get(&self, id: u32) -> &str {
        self.list.get(id as usize).map_or("", String::as_str)
    }

    /// What a name says.
    pub(crate) fn meaning(&self, id: u32) -> Meaning {
        self.meanings.get(id as usize).copied().unwrap_or(Meaning::Plain)
    }

    /// Frees what only reading needs.
    pub(crate) fn close(&mut self) {
        self.by_bytes = FxHashMap::default();
    }
}

/// A name without the addresses of objects.
pub(crate) fn without_addresses(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        text.push_str(&rest[..at + 2]);
        if digits > 3 {
            text.push_str("...");
        } else {
            text.push_str(&rest[at + 2..at + 2 + digits]);
        }
        rest = &rest[at + 2 + digits..];
    }
    text.push_str(rest);
    text
}

/// The name of a module without the number of its instance: `nn.Module: Linear_0` is `nn.Module: Linear`.
pub(crate) fn without_instance(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((class, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => class,
        _ => name,
    }
}

/// The name of a kernel without its arguments, its template arguments, and what it returns.
pub(crate) fn short_kernel(name: &str) -> String {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut text = String::new();
    let mut depth = 0_u32;
    let mut at = 0;
    while let Some(character) = name[at..].chars().next() {
        let rest = &name[at..];
        match character {
            '<' if !text.ends_with("operator") => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '(' if rest.starts_with(ANONYMOUS) => {
                text.push_str(ANONYMOUS);
                at += ANONYMOUS.len();
                continue;
            }
            '(' if text.ends_with("operator") => {
                text.push_str("()");
                at += rest.find(')').map_or(1, |end| end + 1);
                continue;
            }
            '(' => break,
            _ => text.push(character),
        }
        at += character.len_utf8();
    }
    let short = text.trim().strip_prefix("void ").unwrap_or(text.trim()).trim();
    // Comparison signs are no brackets.
    if short.is_empty() || depth > 0 { name.to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_of_users_are_told_from_others() {
        for name in [
            "train.py(30): main",
            "/home/user/model/layers.py(7): forward",
            "/opt/venv/lib/python3.12/site-packages/transformers/trainer.py(1): train",
            "src/torch_utils.py(3): f",
        ] {
            assert_eq!(Meaning::of(name), Meaning::OwnFrame, "{name}");
        }
        for name in [
            "torch/nn/modules/linear.py(12): forward",
            "/opt/venv/lib/python3.12/site-packages/torch/optim/adam.py(1): step",
            "/usr/lib/python3.11/threading.py(1): run",
            "multiprocessing/spawn.py(122): spawn_main",
            "threading.py(1002): _bootstrap",
            "<string>(1): <module>",
            "<frozen importlib._bootstrap>(1): _find_and_load",
            "<built-in function sleep>",
        ] {
            assert_eq!(Meaning::of(name), Meaning::OtherFrame, "{name}");
        }
        assert_eq!(Meaning::of("nn.Module: Linear_0"), Meaning::Module);
        assert_eq!(Meaning::of("ProfilerStep#12"), Meaning::Step(12));
        assert_eq!(Meaning::of("gloo:all_reduce"), Meaning::HostOperation);
    }

    #[test]
    fn names_are_shortened() {
        for (name, short) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::f(int)::{lambda()#1}>(int, float)",
                "at::native::vectorized_elementwise_kernel",
            ),
            ("void (anonymous namespace)::softmax<float>(float*)", "(anonymous namespace)::softmax"),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ),
            ("void f::operator()<int>(int)", "f::operator()"),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
            ("a < b", "a < b"),
            ("<lambda>", "<lambda>"),
        ] {
            assert_eq!(short_kernel(name), short);
        }
        assert_eq!(without_instance("nn.Module: Linear_12"), "nn.Module: Linear");
        assert_eq!(without_instance("nn.Module: My_Layer"), "nn.Module: My_Layer");
        assert_eq!(
            without_addresses("<bound f of <M object at 0x7f31aa10>> 0x1"),
            "<bound f of <M object at 0x...>> 0x1"
        );
    }

    proptest! {
        #[test]
        fn any_name_is_shortened(name: String) {
            let _ = (short_kernel(&name), without_addresses(&name), without_instance(&name), Meaning::of(&name));
        }
    }
}
