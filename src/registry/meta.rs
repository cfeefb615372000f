//! The meta tool: the groups that a model may activate itself.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Group, Registry, View, notes_of};

/// The choice of a model for one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// Activate it.
    On,
    /// Deactivate it.
    Off,
    /// An invalid value, by the name of its type.
    Wrong(String),
}

impl<B> Registry<B> {
    /// The properties of the schema: one boolean for each group, in the order of their creation.
    #[must_use]
    pub fn switches(&self) -> Map<String, Value> {
        self.switches_in(&View::default())
    }

    /// The same for the groups that may be switched through a view.
    #[must_use]
    pub fn switches_in(&self, view: &View) -> Map<String, Value> {
        let switch = |description: String| {
            let mut switch = Map::with_capacity(3);
            switch.insert("default".to_owned(), Value::Bool(false));
            switch.insert("description".to_owned(), Value::String(description));
            switch.insert("type".to_owned(), Value::String("boolean".to_owned()));
            Value::Object(switch)
        };
        let groups = view.switchable_groups(self).into_iter();
        groups.map(|group| (group.name().to_owned(), switch(group.description()))).collect()
    }

    /// Activates the chosen groups, deactivates all others, and returns the text for the model.
    ///
    /// # Errors
    ///
    /// The text for the model, if a group is unknown or a value is not a boolean; then nothing changes.
    pub fn equip(&mut self, wanted: &[(String, Switch)]) -> Result<String, String> {
        self.equip_in(&View::default(), wanted)
    }

    /// The same through a view: groups that it does not include are unknown and stay as they are. A view of a session
    /// switches groups for that session only.
    ///
    /// # Errors
    ///
    /// Those of `equip`.
    pub fn equip_in(&mut self, view: &View, wanted: &[(String, Switch)]) -> Result<String, String> {
        let groups: Vec<&Arc<Group>> = view.switchable_groups(self);
        let is_known = |name: &str| groups.iter().any(|group| group.name() == name);
        let unknown: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).filter(|name| !is_known(name)).collect();
        if !unknown.is_empty() {
            return Err(unknown_groups(&unknown, &groups));
        }
        for (name, switch) in wanted {
            if let Switch::Wrong(kind) = switch {
                return Err(format!("Invalid arguments: the argument {name} should be a bool value, but got {kind}."));
            }
        }
        let chosen: Vec<&str> =
            wanted.iter().filter(|(_, switch)| *switch == Switch::On).map(|(name, _)| name.as_str()).collect();
        view.switch(groups.iter().map(|group| (&***group, chosen.contains(&group.name()))));
        if let Some(session) = view.session() {
            session.forget_unknown(self);
        }
        if chosen.is_empty() {
            return Ok("All tool groups are now deactivated currently.".to_owned());
        }
        let mut text = format!("Now tool groups {} are activated.", quoted(&chosen));
        let notes = notes_of(groups.iter().copied().filter(|group| chosen.contains(&group.name())));
        if !notes.is_empty() {
            text.push_str(" You MUST follow these notes to use these tools:\n<notes>");
            text.push_str(&notes);
            text.push_str("</notes>");
        }
        Ok(text)
    }
}

fn unknown_groups(unknown: &[&str], groups: &[&Arc<Group>]) -> String {
    let what = if unknown.len() == 1 { "tool group" } else { "tool groups" };
    let known: Vec<&str> = groups.iter().map(|group| group.name()).collect();
    let known = if known.is_empty() {
        "There are no tool groups.".to_owned()
    } else {
        format!("The tool groups are {}.", quoted(&known))
    };
    format!("Invalid arguments: unknown {what} {}, nothing was changed. {known}", quoted(unknown))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}
