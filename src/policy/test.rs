//! Reading the conditions on one argument.

use serde_json::Value;

use super::condition::{Condition, Test, Tests, Type, type_name};
use super::fault::{Fault, unknown};
use super::glob;
use super::path::Path;
use super::pattern;
use crate::json::number::Decimal;

const OPERATORS: [&str; 15] = [
    "equals",
    "not_equals",
    "in",
    "prefix",
    "suffix",
    "contains",
    "glob",
    "matches",
    "gt",
    "ge",
    "lt",
    "le",
    "exists",
    "absent",
    "type",
];

/// Reads what has to be true of the value at a path: a table of operators, or the value itself.
pub(super) fn condition(path: &str, wanted: &Value) -> Result<Condition, Vec<Fault>> {
    let path = Path::parse(path).map_err(|reason| vec![Fault::whole(format!("`{path}` is no path: {reason}"))]);
    let tests = match wanted {
        Value::Object(operators) if operators.is_empty() => {
            Err(vec![Fault::whole("it has no condition").suggest("write `{ exists = true }` if any value will do")])
        }
        Value::Object(operators) => tests(operators),
        value => Ok(Tests::Present([Test::Equals(value.clone())].into())),
    };
    match (path, tests) {
        (Ok(path), Ok(tests)) => Ok(Condition { path, tests }),
        (path, tests) => Err([path.err(), tests.err()].into_iter().flatten().flatten().collect()),
    }
}

fn tests(operators: &serde_json::Map<String, Value>) -> Result<Tests, Vec<Fault>> {
    let (mut read, mut faults, mut is_absent) = (Vec::new(), Vec::new(), false);
    for (operator, operand) in operators {
        match test(operator, operand) {
            Ok(One::Test(test)) => read.push(test),
            Ok(One::Present) => {}
            Ok(One::Absent) => is_absent = true,
            Err(fault) => faults.push(fault.under(operator)),
        }
    }
    if is_absent && operators.len() > 1 {
        faults.push(Fault::whole("nothing is true of a value that is absent").suggest("write two rules"));
    }
    match faults.is_empty() {
        true if is_absent => Ok(Tests::Absent),
        true => Ok(Tests::Present(read.into())),
        false => Err(faults),
    }
}

enum One {
    Test(Test),
    Present,
    Absent,
}

fn test(operator: &str, operand: &Value) -> Result<One, Fault> {
    let wrong = |wanted: &str| Fault::whole(format!("it has to be {wanted}, and is {}", type_name(operand)));
    let text = || operand.as_str().ok_or_else(|| wrong("a string"));
    let part = || text().and_then(|text| if text.is_empty() { Err(Fault::whole("it is empty")) } else { Ok(text) });
    let number = || operand.as_number().map(Decimal::of).ok_or_else(|| wrong("a number"));
    let flag = || operand.as_bool().ok_or_else(|| wrong("`true` or `false`"));
    Ok(One::Test(match operator {
        "equals" => Test::Equals(operand.clone()),
        "not_equals" => Test::NotEquals(operand.clone()),
        "in" => match operand {
            Value::Array(values) if values.is_empty() => return Err(Fault::whole("the list is empty")),
            Value::Array(values) => Test::In(values.as_slice().into()),
            _ => return Err(wrong("a list")),
        },
        "prefix" => Test::Prefix(part()?.into()),
        "suffix" => Test::Suffix(part()?.into()),
        "contains" if operand.as_str() == Some("") => return Err(Fault::whole("it is empty")),
        "contains" => Test::Contains(operand.clone()),
        "glob" => Test::Glob(glob::parse(text()?).map_err(|reason| Fault::whole(format!("it is no glob: {reason}")))?),
        "matches" => Test::Matches(pattern::regex(text()?).map_err(Fault::whole)?),
        "gt" => Test::Gt(number()?),
        "ge" => Test::Ge(number()?),
        "lt" => Test::Lt(number()?),
        "le" => Test::Le(number()?),
        "exists" => return Ok(if flag()? { One::Present } else { One::Absent }),
        "absent" => return Ok(if flag()? { One::Absent } else { One::Present }),
        "type" => Test::Type(types(operand)?),
        other => return Err(unknown("condition", other, &OPERATORS)),
    }))
}

fn types(operand: &Value) -> Result<Box<[Type]>, Fault> {
    let words = match operand {
        Value::String(_) => std::slice::from_ref(operand),
        Value::Array(words) if !words.is_empty() => words,
        _ => return Err(Fault::whole("it has to be the name of a type, or a list of them")),
    };
    let read = |word: &Value| {
        let word = word.as_str().ok_or_else(|| Fault::whole("a type is a string"))?;
        Type::parse(word).ok_or_else(|| unknown("type", word, &Type::ALL.map(|(_, word)| word)))
    };
    words.iter().map(read).collect()
}
