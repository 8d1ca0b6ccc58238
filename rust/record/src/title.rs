//! What a program is called: in Python's interpreter, the script or the module that it runs.

use std::env;
use std::ffi::OsString;
use std::path::Path;

/// The file name of the executable.
pub(crate) fn executable() -> String {
    let path = env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of a script or module of Python; `None` in other programs, and where Python runs neither.
pub(crate) fn of_python() -> Option<String> {
    executable().starts_with("python").then(|| script(env::args_os().skip(1)))?
}

/// What Python runs, by the arguments after its own name.
fn script(mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    while let Some(word) = arguments.next() {
        let text = word.to_str().unwrap_or_default();
        match text {
            "--" => return stem(Path::new(&arguments.next()?)),
            "-" => return None,
            _ => {}
        }
        let Some(options) = text.strip_prefix('-') else { return stem(Path::new(&word)) };
        if let Some(long) = options.strip_prefix('-') {
            if long == "check-hash-based-pycs" {
                arguments.next();
            }
            continue;
        }
        // Several letters may share a dash; some take the rest of the word, or else the next one.
        if let Some((at, letter)) = options.char_indices().find(|(_, letter)| "cmWX".contains(*letter)) {
            let rest = &options[at + 1..];
            let value = if rest.is_empty() { arguments.next()?.into_string().ok()? } else { rest.to_owned() };
            match letter {
                'm' => return value.rsplit('.').next().map(str::to_owned),
                'c' => return None,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_runs_scripts_and_modules() {
        let named = |line: &str| script(line.split(' ').map(OsString::from));
        assert_eq!(named("heat.py 100").as_deref(), Some("heat"));
        assert_eq!(named("-uX dev -Wignore ./runs/heat.v2.py -m x").as_deref(), Some("heat.v2"));
        assert_eq!(named("-m mpi4py.bench -x").as_deref(), Some("bench"));
        assert_eq!(named("-Imsolver").as_deref(), Some("solver"));
        assert_eq!(named("--check-hash-based-pycs never -- -odd.py").as_deref(), Some("-odd"));
        for line in ["-c pass", "-i", "-", "-W"] {
            assert_eq!(named(line), None, "{line}");
        }
    }
}
