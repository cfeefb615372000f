//! Several processes on one folder, and a process that is killed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use toolcrib::policy::{Approvals, Key, Pending};

use super::{FACTS, Place, asked, at, key, on_disk};

const PLACE: &str = "TOOLCRIB_TEST_APPROVALS";

fn write_calls(place: &Path, approvals: &Approvals, count: usize) -> Vec<Pending> {
    let pending: Vec<_> = (0..count).map(|number| asked(approvals, number)).collect();
    let lines: Vec<_> = pending.iter().map(|call| call.to_value().to_string()).collect();
    fs::write(place.join("calls"), lines.join("\n")).expect("a file");
    pending
}

fn read_calls(place: &Path) -> Vec<Pending> {
    let text = fs::read_to_string(place.join("calls")).expect("a file");
    let values = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    values.map(|value| Pending::from_value(&value).expect("a pending call")).collect()
}

/// The program of the other process: claims every call, and prints each claim that it got.
#[test]
#[ignore = "started by the tests below in a process of its own"]
fn claim_every_call() {
    let place = std::env::var_os(PLACE).expect("TOOLCRIB_TEST_APPROVALS, which the tests below set to their folder");
    let place = Path::new(&place);
    let approvals = Approvals::open(&place.join("approvals"), Key::new([8; 32])).expect("a folder of approvals");
    // The harness keeps what a test prints; this does not go through it.
    let mut output = std::io::stdout().lock();

    for (number, call) in read_calls(place).iter().enumerate() {
        if approvals.claim(call, &FACTS, at(1)).is_ok() {
            writeln!(output, "\nclaimed {number}").and_then(|()| output.flush()).expect("a pipe");
        }
    }
}

fn other_process(place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "approval::process::claim_every_call", "--ignored", "--nocapture"]);
    command.env(PLACE, place.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("another process")
}

fn claims(child: &mut Child) -> impl Iterator<Item = usize> + use<> {
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    lines.map_while(std::io::Result::ok).filter_map(|line| line.strip_prefix("claimed ")?.parse().ok())
}

#[test]
fn of_two_processes_exactly_one_claims_each_call() {
    let place = Place::new();
    write_calls(place.path(), &on_disk(&place), 200);

    let mut rivals = [other_process(&place), other_process(&place)];
    let mut all: Vec<usize> = rivals.iter_mut().map(claims).collect::<Vec<_>>().into_iter().flatten().collect();
    for rival in &mut rivals {
        assert!(rival.wait().expect("another process").success());
    }

    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[test]
fn what_a_killed_process_has_claimed_stays_claimed() {
    let place = Place::new();
    let approvals = on_disk(&place);
    let pending = write_calls(place.path(), &approvals, 400);
    let mut claimed = Vec::new();

    for round in 1..=10 {
        let mut child = other_process(&place);
        let mut told = claims(&mut child);
        claimed.extend(told.by_ref().take(round));
        child.kill().expect("another process");
        child.wait().expect("another process");
        claimed.extend(told);
    }

    assert!(claimed.len() >= 55, "{}", claimed.len());
    assert!(claimed.iter().all(|number| approvals.claim(&pending[*number], &FACTS, at(2)).is_err()));
    claimed.sort_unstable();
    assert!(claimed.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(approvals.claim(&asked(&Approvals::in_memory(key()), 5_000), &FACTS, at(2)), Ok(()));
}
