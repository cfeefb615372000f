//! Values of the standard library as JSON: times, paths, addresses and the like.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::default::{array, mapping, shown};
use crate::schema::Node;

/// The first class in the ancestry that this module knows, as `module.Name`.
pub(super) fn origin(kind: &Bound<'_, PyType>) -> Option<String> {
    let mut first = None;
    for class in kind.mro().iter() {
        let class = class.cast_into::<PyType>().ok()?;
        let module = class.module().ok()?;
        let name = format!("{}.{}", module.to_str().ok()?, class.name().ok()?.to_str().ok()?);
        if is_known(&name) {
            return Some(name);
        }
        first.get_or_insert(name);
    }
    first
}

fn is_known(name: &str) -> bool {
    is_pure_path(name)
        || matches!(
            name,
            "datetime.datetime"
                | "datetime.date"
                | "datetime.time"
                | "datetime.timedelta"
                | "decimal.Decimal"
                | "fractions.Fraction"
                | "uuid.UUID"
                | "re.Pattern"
                | "collections.deque"
                | "collections.defaultdict"
                | "pathlib.Path"
                | "pathlib._local.Path"
                | "zoneinfo.ZoneInfo"
                | "ipaddress.IPv4Address"
                | "ipaddress.IPv4Interface"
                | "ipaddress.IPv4Network"
                | "ipaddress.IPv6Address"
                | "ipaddress.IPv6Interface"
                | "ipaddress.IPv6Network"
        )
}

pub(super) fn is_pure_path(name: &str) -> bool {
    let name = name.strip_prefix("pathlib.").map(|name| name.trim_start_matches("_local."));
    matches!(name, Some("PurePath" | "PurePosixPath" | "PureWindowsPath"))
}

/// The JSON of a value whose class goes by `name`.
pub(super) fn named(value: &Bound<'_, PyAny>, name: &str, depth: usize) -> Option<Node> {
    match name {
        "datetime.datetime" | "datetime.time" => {
            let text: String = value.call_method0("isoformat").ok()?.extract().ok()?;
            Some(Node::from(text.strip_suffix("+00:00").map_or_else(|| text.clone(), |local| format!("{local}Z"))))
        }
        "datetime.date" => value.call_method0("isoformat").ok()?.extract::<String>().ok().map(Node::from),
        "datetime.timedelta" => duration(value),
        "collections.deque" => array(value, depth),
        "collections.defaultdict" => mapping(value.cast::<PyDict>().ok()?, depth),
        "re.Pattern" => shown(&value.getattr("pattern").ok()?),
        _ if is_known(name) && !is_pure_path(name) => shown(value),
        _ => None,
    }
}

/// A span of time as ISO 8601 writes it, with years of 365 days.
fn duration(value: &Bound<'_, PyAny>) -> Option<Node> {
    let part = |name: &str| value.getattr(name).ok()?.extract::<i128>().ok();
    let total = (part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?;
    let (sign, total) = if total < 0 { ("-", -total) } else { ("", total) };
    let (days, rest) = (total / 86_400_000_000, total % 86_400_000_000);
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let mut text = format!("{sign}P");
    for (amount, unit) in [(days / 365, 'Y'), (days % 365, 'D')] {
        if amount > 0 {
            text.push_str(&amount.to_string());
            text.push(unit);
        }
    }
    if rest > 0 || total == 0 {
        text.push('T');
        for (amount, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
            if amount > 0 {
                text.push_str(&amount.to_string());
                text.push(unit);
            }
        }
        if micros > 0 {
            let fraction = format!("{micros:06}");
            text.push_str(&[&(seconds % 60).to_string(), ".", fraction.trim_end_matches('0'), "S"].concat());
        } else if seconds % 60 > 0 || total == 0 {
            text.push_str(&[&(seconds % 60).to_string(), "S"].concat());
        }
    }
    Some(Node::from(text))
}
