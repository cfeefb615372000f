//! One state of a policy: its rules in the order in which they are tried, and what was already found out with them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::index::Index;
use super::subject::Known;
use super::{CallFacts, Decision, Rule, Shadowed, Verdict};

/// How many calls are remembered; beyond that all are forgotten.
const REMEMBERED: usize = 4096;

/// Rules that never change, so what is remembered of them is never wrong.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// In the order in which they are tried.
    pub(super) rules: Vec<Arc<Rule>>,
    pub(super) default: Decision,
    pub(super) is_shadow: bool,
    index: Index,
    hasher: ahash::RandomState,
    plans: RwLock<HashMap<u64, (Known, Arc<Plan>), ahash::RandomState>>,
}

/// What is left to decide about the calls of one subject.
#[derive(Debug)]
pub(super) struct Plan {
    /// The rules that are about it if their arguments say so, up to the first that is about it in any case.
    rules: Box<[Arc<Rule>]>,
    /// Those that only count where somebody would be asked.
    answers: Box<[Arc<Rule>]>,
    /// What holds where no rule does.
    without_rule: Verdict,
    /// The same, if the whole policy is in shadow mode: then only the tool's own wish counts.
    in_shadow: Option<Verdict>,
    /// The verdict, if arguments do not matter.
    pub(super) fixed: Option<Verdict>,
}

impl Snapshot {
    pub(super) fn new(mut rules: Vec<Arc<Rule>>, default: Decision, is_shadow: bool) -> Self {
        // The sort is stable: of rules that are equal in all of this, the first that came is named.
        rules.sort_by_key(|rule| Reverse((rule.tier, rule.priority, rule.decision)));
        Self {
            index: Index::new(&rules),
            rules,
            default,
            is_shadow,
            hasher: ahash::RandomState::new(),
            plans: RwLock::default(),
        }
    }

    /// The plan for a subject, which is made once.
    pub(super) fn with_plan<T>(&self, subject: &CallFacts<'_>, read: impl FnOnce(&Arc<Plan>) -> T) -> T {
        let hash = self.hasher.hash_one(subject);
        // A plan is inserted whole or not at all, so a panic elsewhere leaves nothing half done.
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, plan)) = plans.get(&hash)
            && known.is(subject)
        {
            return read(plan);
        }
        drop(plans);
        let plan = Arc::new(self.plan(subject));
        let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= REMEMBERED {
            plans.clear();
        }
        plans.insert(hash, (Known::new(subject), plan.clone()));
        drop(plans);
        read(&plan)
    }

    /// Finds the rules that are about a subject.
    pub(super) fn plan(&self, subject: &CallFacts<'_>) -> Plan {
        let (mut rules, mut answers) = (Vec::new(), Vec::new());
        let mut is_settled = false;
        for place in self.index.candidates(subject) {
            let rule = &self.rules[place as usize];
            // Behind a rule that is about the subject in any case there can only be answers to what it asks.
            if (is_settled && !rule.is_answer()) || rule.misfit(subject).is_some() {
                continue;
            }
            if rule.is_answer() {
                answers.push(rule.clone());
                continue;
            }
            rules.push(rule.clone());
            is_settled = !rule.needs_arguments() && (self.is_shadow || !rule.is_shadow);
        }
        let is_fixed = !rules.iter().chain(&answers).any(|rule| rule.needs_arguments());
        let mut plan = Plan {
            rules: rules.into(),
            answers: answers.into(),
            without_rule: Verdict::without_rule(subject.permission, self.default),
            in_shadow: self.is_shadow.then(|| Verdict::without_rule(subject.permission, Decision::Allow)),
            fixed: None,
        };
        if is_fixed {
            plan.fixed = Some(plan.verdict(|_| true));
        }
        plan
    }
}

impl Plan {
    /// Decides, asking of each rule in turn whether it is about the call.
    pub(super) fn verdict(&self, mut is_met: impl FnMut(&Rule) -> bool) -> Verdict {
        let (verdict, would_be) = self.unanswered(&mut is_met);
        let mut verdict = self.answered(verdict, &mut is_met);
        let would_be = self.answered(would_be, &mut is_met);
        if would_be.decision != verdict.decision {
            verdict.shadowed = Some(Arc::new(Shadowed { decision: would_be.decision, cause: would_be.cause }));
        }
        verdict
    }

    /// What is decided, and what would be if nothing were in shadow mode, if nobody had ever been asked.
    pub(super) fn unanswered(&self, is_met: &mut impl FnMut(&Rule) -> bool) -> (Verdict, Verdict) {
        let (mut first, mut live) = (None, None);
        for rule in self.rules.iter().filter(|rule| is_met(rule)) {
            first = first.or(Some(rule));
            if self.in_shadow.is_some() || !rule.is_shadow {
                live = Some(rule);
                break;
            }
        }
        let of = |rule: Option<&Arc<Rule>>| rule.map_or_else(|| self.without_rule.clone(), Verdict::of_rule);
        (self.in_shadow.clone().unwrap_or_else(|| of(live)), of(first))
    }

    /// A question that somebody has answered for good is none.
    fn answered(&self, verdict: Verdict, is_met: &mut impl FnMut(&Rule) -> bool) -> Verdict {
        if verdict.decision != Decision::Ask {
            return verdict;
        }
        let answer = self.answers.iter().find(|rule| rule.answers(&verdict.cause) && is_met(rule));
        answer.map_or(verdict, Verdict::of_rule)
    }
}
