//! Which node a file is of.

/// The node in a name of the form `HOST_PID.TIME.pt.trace.json`.
pub(crate) fn host(name: &str) -> Option<String> {
    let (front, _) = name.split_once(".pt.trace.json")?;
    let (front, time) = front.rsplit_once('.')?;
    let (host, process) = front.rsplit_once('_')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(time) && is_number(process) && !host.is_empty()).then(|| host.to_owned())
}
