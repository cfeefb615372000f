//! The table of calls: the native driver gives what `tests/data/call_cases.json` says, as every way to call from Python does.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib::call::{ApprovalRequest, Code, Event, EventKind, Kinds, Listener, ToolResponse};
use toolcrib::native::{NativeTool, ToolContext, ToolStream, Toolkit};
use toolcrib::policy::{Answer, AuditRecord, Choice, Decision, Pending, Permission, Policy, Rule, ToolKind};
use toolcrib::provider;
use toolcrib::registry::Filter;

/// The arguments of the tool.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
struct Mail {
    to: String,
    #[serde(default = "one")]
    amount: i64,
}

const fn one() -> i64 {
    1
}

/// A list that a toolkit's callbacks append to.
type Log = Arc<Mutex<Vec<Value>>>;

/// A toolkit with the tool of the table, and what came of its calls.
struct Desk {
    toolkit: Toolkit,
    events: Listener,
    ran: Log,
    asked: Log,
    audit: Log,
}

impl Desk {
    fn new(policy: &Value) -> Self {
        let (ran, asked, audit) = (Log::default(), Log::default(), Log::default());
        let toolkit = {
            let audit = audit.clone();
            Toolkit::new().with_audit(move |record: &AuditRecord<'_>| {
                audit.lock().unwrap().push(shown(record));
                Ok(())
            })
        };
        let toolkit = match (&policy["rules"], word::<Decision>(&policy["default"], Decision::parse)) {
            (Value::Array(rules), default) => {
                let rules = rules.iter().map(|rule| Rule::from_value(rule).unwrap()).collect();
                toolkit.with_policy(Policy::new(rules, default).unwrap())
            }
            _ => toolkit,
        };
        let toolkit = match &policy["answer"] {
            Value::Null => toolkit,
            answer => {
                let (asked, choice) = (asked.clone(), word(answer, Choice::parse));
                toolkit.with_approver(move |request: ApprovalRequest| {
                    asked.lock().unwrap().push(request.arguments);
                    std::future::ready(choice)
                })
            }
        };
        toolkit.permissions().set_headless(policy["headless"] == true);
        toolkit.create_group("mail", "Mail.", policy["tool"] != "inactive").unwrap();
        if policy["tool"] != "unknown" {
            let permission = word(&policy["permission"], Permission::parse);
            toolkit.register_in("mail", send(&ran).with_permission(permission)).unwrap();
        }
        let events = toolkit.events().listen(Kinds::ALL, 100, None);
        Self { toolkit, events, ran, asked, audit }
    }

    /// Calls the tool in one of the ways of the table.
    async fn call(&self, way: &str, input: &Value) -> ToolResponse {
        let block = json!({"type": "tool_use", "id": "call-1", "name": "send", "input": input});
        let call = provider::read(&block, None).unwrap();
        let answer = match way {
            "native" => return last(self.toolkit.call(call)).await,
            "native view" => return last(self.toolkit.view(Some("ann"), Filter::default()).call(call)).await,
            "native resume yes" => Choice::Once,
            "native resume no" => Choice::No,
            other => panic!("unknown way: {other}"),
        };
        let pending = last(self.toolkit.call(call)).await;
        let pending = Pending::from_value(&pending.metadata.unwrap()["pending"]).unwrap();
        last(self.toolkit.resume(pending, Answer::from(answer))).await
    }

    /// The row of the calls so far.
    fn row(&self, last: &ToolResponse) -> Value {
        let taken = |log: &Log| log.lock().unwrap().clone();
        json!({
            "code": last.code.map(Code::as_str),
            "text": last.text(),
            "audit": taken(&self.audit),
            "events": self.events.take_all().iter().map(|event| described(event)).collect::<Vec<_>>(),
            "asked": taken(&self.asked).len(),
            "ran": taken(&self.ran),
        })
    }
}

fn send(ran: &Log) -> NativeTool {
    let ran = ran.clone();
    let tool = NativeTool::new("send", "Sends mail.", move |_: ToolContext, mail: Mail| {
        ran.lock().unwrap().push(serde_json::to_value(&mail).unwrap());
        std::future::ready(Ok(format!("sent {} to {}", mail.amount, mail.to)))
    });
    tool.with_kind(ToolKind::Execute)
}

async fn last(stream: ToolStream) -> ToolResponse {
    stream.collect::<Vec<_>>().await.pop().unwrap()
}

fn word<T>(value: &Value, parse: impl Fn(&str) -> Option<T>) -> T {
    parse(value.as_str().unwrap()).unwrap()
}

/// A record of the audit as the table writes it: of the fields that are null only the arguments.
fn shown(record: &AuditRecord<'_>) -> Value {
    const FIELDS: [&str; 8] = ["rule", "decision", "shadow", "answered_by", "answer", "outcome", "caller", "session"];
    let record = record.to_value();
    let fields = FIELDS.iter().filter(|name| !record[**name].is_null());
    let mut shown: Map<String, Value> = fields.map(|name| ((*name).to_owned(), record[*name].clone())).collect();
    shown.insert("arguments".to_owned(), record["arguments"].clone());
    shown.into()
}

/// An event as the table writes it.
fn described(event: &Event) -> String {
    let word = match event.kind {
        EventKind::PermissionResult => "decision",
        EventKind::Error => "error",
        EventKind::CallEnd => "outcome",
        EventKind::CallStart | EventKind::Chunk | EventKind::PermissionRequest => {
            return event.kind.as_str().to_owned();
        }
    };
    format!("{} {}", event.kind.as_str(), event.data[word].as_str().unwrap())
}

#[tokio::test]
async fn every_row_of_the_table_holds() {
    let table: Value = serde_json::from_str(include_str!("../data/call_cases.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let native = |row: &&Value| row["way"].as_str().unwrap().starts_with("native");
    let mut differing = Vec::new();
    let mut rows = 0;

    for row in table["rows"].as_array().unwrap().iter().filter(native) {
        let (way, policy, arguments) = (text(&row["way"]), text(&row["policy"]), text(&row["arguments"]));
        let desk = Desk::new(&table["policies"][&policy]);
        let response = desk.call(&way, &table["arguments"][&arguments]["sent"]).await;
        let (came, wanted) = (desk.row(&response), &table["results"][text(&row["expected"])]);
        rows += 1;
        if came != *wanted {
            differing.push(format!("{way} / {policy} / {arguments}\n  came   {came}\n  wanted {wanted}"));
        }
    }

    assert!(rows > 600, "{rows}");
    assert!(differing.is_empty(), "{} of {rows} rows differ:\n{}", differing.len(), differing.join("\n"));
}
