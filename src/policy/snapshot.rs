//! Decisions about calls by one immutable state of a policy: its rules in the order in which they are tried, an index over
//! them, and cached plans.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use super::pattern::ArgumentTexts;
use super::rule::NamePatterns;
use super::{Arguments, CallFacts, Cause, Decision, Permission, Policy, Quick, Rule, Shadowed, ToolKind, Verdict};
use crate::sync::{read, write};

/// The most plans that are cached; beyond that the cache is cleared.
const MAX_PLANS: usize = 4096;

/// Rules that never change, so that no cached plan is ever stale.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// In the order in which they are tried.
    pub(super) rules: Vec<Arc<Rule>>,
    pub(super) default: Decision,
    pub(super) is_shadow: bool,
    index: RuleIndex,
    hasher: ahash::RandomState,
    plans: RwLock<HashMap<u64, (OwnedFacts, Arc<RulePlan>), ahash::RandomState>>,
}

/// The part of the decision that is left for calls with the same facts.
#[derive(Debug)]
pub(super) struct RulePlan {
    /// The rules that match if the arguments do, up to the first that matches with any arguments.
    rules: Box<[Arc<Rule>]>,
    /// The rules that count only where an approver would be asked.
    answers: Box<[Arc<Rule>]>,
    /// The verdict where no rule matches.
    without_rule: Verdict,
    /// The verdict if the whole policy is in shadow mode: then only the permission of the tool counts.
    in_shadow: Option<Verdict>,
    /// The verdict, if the arguments make no difference.
    pub(super) fixed: Option<Verdict>,
}

impl Policy {
    /// Decides without looking at the arguments, if they make no difference.
    #[must_use]
    pub fn quick(&self, facts: &CallFacts<'_>) -> Quick {
        let snapshot = read(&self.snapshot);
        snapshot.with_plan(facts, |plan| match &plan.fixed {
            Some(verdict) => Quick::Fixed(verdict.clone()),
            None => Quick::NeedsArguments,
        })
    }

    /// Decides about a call.
    #[must_use]
    pub fn decide(&self, facts: &CallFacts<'_>, arguments: &dyn Arguments) -> Verdict {
        let snapshot = read(&self.snapshot);
        let plan = snapshot.with_plan(facts, |plan| match &plan.fixed {
            Some(verdict) => Err(verdict.clone()),
            None => Ok(plan.clone()),
        });
        // Converting arguments may run any code, so nothing is locked then.
        drop(snapshot);
        let plan = match plan {
            Ok(plan) => plan,
            Err(verdict) => return verdict,
        };
        let mut texts = ArgumentTexts::default();
        let arguments = arguments.value();
        plan.verdict(|rule| rule.argument_mismatch(arguments, &mut texts).is_none())
    }
}

impl Snapshot {
    pub(super) fn new(mut rules: Vec<Arc<Rule>>, default: Decision, is_shadow: bool) -> Self {
        // The sort is stable: of rules that are equal in all of this, the first that was added is reported.
        rules.sort_by_key(|rule| Reverse((rule.tier, rule.priority, rule.decision)));
        Self {
            index: RuleIndex::new(&rules),
            rules,
            default,
            is_shadow,
            hasher: ahash::RandomState::new(),
            plans: RwLock::default(),
        }
    }

    /// Passes the plan for these facts to a function; the plan is made once.
    pub(super) fn with_plan<T>(&self, facts: &CallFacts<'_>, use_plan: impl FnOnce(&Arc<RulePlan>) -> T) -> T {
        let hash = self.hasher.hash_one(facts);
        let plans = read(&self.plans);
        if let Some((known, plan)) = plans.get(&hash)
            && known.equals(facts)
        {
            return use_plan(plan);
        }
        drop(plans);
        let plan = Arc::new(self.plan(facts));
        let mut plans = write(&self.plans);
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(hash, (OwnedFacts::new(facts), plan.clone()));
        drop(plans);
        use_plan(&plan)
    }

    /// Finds the rules that may match calls with these facts.
    pub(super) fn plan(&self, facts: &CallFacts<'_>) -> RulePlan {
        let (mut rules, mut answers) = (Vec::new(), Vec::new());
        let mut is_certain = false;
        for position in self.index.candidates(facts) {
            let rule = &self.rules[position as usize];
            // After a rule that matches with any arguments only answers to its question matter.
            if (is_certain && !rule.is_answer()) || rule.facts.mismatch(facts).is_some() {
                continue;
            }
            if rule.is_answer() {
                answers.push(rule.clone());
                continue;
            }
            rules.push(rule.clone());
            is_certain = !rule.needs_arguments() && (self.is_shadow || !rule.is_shadow);
        }
        let is_fixed = !rules.iter().chain(&answers).any(|rule| rule.needs_arguments());
        let mut plan = RulePlan {
            rules: rules.into(),
            answers: answers.into(),
            without_rule: verdict_without_rule(facts, self.default),
            in_shadow: self.is_shadow.then(|| verdict_without_rule(facts, Decision::Allow)),
            fixed: None,
        };
        if is_fixed {
            plan.fixed = Some(plan.verdict(|_| true));
        }
        plan
    }
}

impl RulePlan {
    /// Decides; `is_met` is true for a rule whose conditions on arguments are met.
    pub(super) fn verdict(&self, mut is_met: impl FnMut(&Rule) -> bool) -> Verdict {
        let (verdict, would_be) = self.unanswered(&mut is_met);
        let mut verdict = self.answered(verdict, &mut is_met);
        let would_be = self.answered(would_be, &mut is_met);
        if would_be.decision != verdict.decision {
            verdict.shadowed = Some(Arc::new(Shadowed { decision: would_be.decision, cause: would_be.cause }));
        }
        verdict
    }

    /// The verdict, and the one without shadow mode, both without regard to lasting approvals.
    pub(super) fn unanswered(&self, is_met: &mut impl FnMut(&Rule) -> bool) -> (Verdict, Verdict) {
        let (mut first, mut live) = (None, None);
        for rule in self.rules.iter().filter(|rule| is_met(rule)) {
            first = first.or(Some(rule));
            if self.in_shadow.is_some() || !rule.is_shadow {
                live = Some(rule);
                break;
            }
        }
        let of = |rule: Option<&Arc<Rule>>| rule.map_or_else(|| self.without_rule.clone(), verdict_of_rule);
        (self.in_shadow.clone().unwrap_or_else(|| of(live)), of(first))
    }

    /// Replaces a question by the lasting approval that answers it, if there is one.
    fn answered(&self, verdict: Verdict, is_met: &mut impl FnMut(&Rule) -> bool) -> Verdict {
        if verdict.decision != Decision::Ask {
            return verdict;
        }
        let answer = self.answers.iter().find(|rule| rule.answers(&verdict.cause) && is_met(rule));
        answer.map_or(verdict, verdict_of_rule)
    }
}

/// The verdict where no rule matches: the stricter of the permission that the tool declares and the default of the policy.
fn verdict_without_rule(facts: &CallFacts<'_>, default: Decision) -> Verdict {
    let asks = match facts.permission {
        Permission::Auto => false,
        Permission::Confirm => true,
        Permission::ByKind => facts.kind.needs_approval(),
    };
    let (decision, cause) =
        if asks && default <= Decision::Ask { (Decision::Ask, Cause::Permission) } else { (default, Cause::Default) };
    Verdict { decision, cause, shadowed: None }
}

/// The verdict where a rule matches.
fn verdict_of_rule(rule: &Arc<Rule>) -> Verdict {
    Verdict { decision: rule.decision(), cause: Cause::Rule(rule.clone()), shadowed: None }
}

/// Call facts as owned data, for a cache.
#[derive(Debug)]
struct OwnedFacts {
    tool: Box<str>,
    server: Option<Box<str>>,
    groups: Box<[Box<str>]>,
    tags: Box<[Box<str>]>,
    kind: ToolKind,
    permission: Permission,
    caller: Option<Box<str>>,
}

impl OwnedFacts {
    fn new(facts: &CallFacts<'_>) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
        Self {
            tool: facts.tool.into(),
            server: facts.server.map(Box::from),
            groups: owned(facts.groups),
            tags: owned(facts.tags),
            kind: facts.kind,
            permission: facts.permission,
            caller: facts.caller.map(Box::from),
        }
    }

    fn equals(&self, facts: &CallFacts<'_>) -> bool {
        let same = |ours: &[Box<str>], theirs: &[&str]| ours.iter().map(AsRef::as_ref).eq(theirs.iter().copied());
        *self.tool == *facts.tool
            && self.server.as_deref() == facts.server
            && self.caller.as_deref() == facts.caller
            && (self.kind, self.permission) == (facts.kind, facts.permission)
            && same(&self.groups, facts.groups)
            && same(&self.tags, facts.tags)
    }
}

/// Positions in the list of rules, by the text that the rules name.
type Positions = HashMap<Box<[u8]>, Vec<u32>, ahash::RandomState>;

/// An index of the rules by the names in their conditions, so that a call does not try every rule.
///
/// Each rule is indexed by one of its conditions, the first that can be; the others are tried afterwards.
#[derive(Debug, Default)]
struct RuleIndex {
    tools: NameIndex,
    servers: NameIndex,
    callers: NameIndex,
    groups: NameIndex,
    tags: NameIndex,
    /// The rules that cannot be indexed.
    rest: Vec<u32>,
}

/// The rules that are indexed by one condition.
#[derive(Debug, Default)]
struct NameIndex {
    exact: Positions,
    prefixes: Affixes,
    suffixes: Affixes,
}

/// Prefixes or suffixes of names, with their lengths.
#[derive(Debug, Default)]
struct Affixes {
    positions: Positions,
    lengths: Vec<usize>,
}

impl RuleIndex {
    fn new(rules: &[Arc<Rule>]) -> Self {
        let mut index = Self::default();
        for (position, rule) in (0..).zip(rules) {
            let indexes = [
                (&rule.facts.tool, &mut index.tools),
                (&rule.facts.server, &mut index.servers),
                (&rule.facts.caller, &mut index.callers),
                (&rule.facts.group, &mut index.groups),
                (&rule.facts.tag, &mut index.tags),
            ];
            let found = indexes.into_iter().find_map(|(names, index)| {
                names.as_ref().filter(|names| names.is_indexable()).map(|names| (names, index))
            });
            match found {
                Some((names, index)) => index.insert(names, position),
                None => index.rest.push(position),
            }
        }
        index
    }

    /// The positions of all rules that may match a call, and of some that do not, in order.
    fn candidates(&self, facts: &CallFacts<'_>) -> Vec<u32> {
        let mut found = self.rest.clone();
        self.tools.find(facts.tool, &mut found);
        facts.server.iter().for_each(|name| self.servers.find(name, &mut found));
        self.callers.find(facts.caller.unwrap_or_default(), &mut found);
        facts.groups.iter().for_each(|name| self.groups.find(name, &mut found));
        facts.tags.iter().for_each(|name| self.tags.find(name, &mut found));
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl NameIndex {
    fn insert(&mut self, names: &NamePatterns, position: u32) {
        for name in names.exact() {
            self.exact.entry(name.as_bytes().into()).or_default().push(position);
        }
        for glob in names.globs() {
            // Every glob of an indexed rule has one of them.
            match glob.prefix() {
                "" => self.suffixes.insert(glob.suffix(), position),
                prefix => self.prefixes.insert(prefix, position),
            }
        }
    }

    fn find(&self, name: &str, found: &mut Vec<u32>) {
        let name = name.as_bytes();
        if let Some(positions) = self.exact.get(name) {
            found.extend(positions);
        }
        self.prefixes.find(|length| name.get(..length), found);
        self.suffixes.find(|length| name.len().checked_sub(length).map(|start| &name[start..]), found);
    }
}

impl Affixes {
    fn insert(&mut self, affix: &str, position: u32) {
        self.positions.entry(affix.as_bytes().into()).or_default().push(position);
        if let Err(at) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(at, affix.len());
        }
    }

    fn find<'n>(&self, part: impl Fn(usize) -> Option<&'n [u8]>, found: &mut Vec<u32>) {
        for part in self.lengths.iter().map_while(|length| part(*length)) {
            if let Some(positions) = self.positions.get(part) {
                found.extend(positions);
            }
        }
    }
}
