//! An agent as data: what the calling model sees of it, its prompt, its tools, its output and its limits.

use std::time::Duration;

use serde_json::{Map, Value};

use super::input::Inputs;
use super::template::{Template, refuse_missing};
use crate::schema::check::Checker;
use crate::schema::check_name;
use crate::{Error, Result};

/// The first message of the user, where a definition has none.
pub const DEFAULT_QUERY: &str = "Get Started!";
/// The default limit of turns.
pub const LIMIT_TURNS: u32 = 30;
/// The default limit of time.
pub const LIMIT_TIME: Duration = Duration::from_secs(600);

/// The limits of one run; `None` is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The most requests to the model.
    pub turns: Option<u32>,
    /// The longest time.
    pub time: Option<Duration>,
    /// The most tokens.
    pub tokens: Option<u64>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { turns: Some(LIMIT_TURNS), time: Some(LIMIT_TIME), tokens: None }
    }
}

impl AgentLimits {
    /// Checks that every limit allows something; the error is a clause.
    fn check(&self) -> Result<(), &'static str> {
        if self.turns == Some(0) {
            return Err("`limits.turns`: expected an integer >= 1, got 0");
        }
        if self.time.is_some_and(|time| time.is_zero()) {
            return Err("`limits.time`: expected a number of seconds > 0, got 0");
        }
        if self.tokens == Some(0) {
            return Err("`limits.tokens`: expected an integer >= 1, got 0");
        }
        Ok(())
    }
}

/// The value that an agent has to give when it has completed its task.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// The name of the argument that carries it.
    pub name: String,
    /// The description for the agent's model.
    pub description: String,
    /// Its JSON Schema.
    pub schema: Value,
}

/// A message before the first one of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// The whole message, with templates in the texts of its `content` or `parts`.
    pub value: Value,
}

impl AgentMessage {
    /// The templates of the message.
    fn templates(&self) -> Vec<Template> {
        let mut found = Vec::new();
        each_text(&mut self.value.clone(), &mut |text| found.push(Template::parse(text)));
        found
    }

    fn fill(&self, inputs: &Map<String, Value>) -> Value {
        let mut value = self.value.clone();
        each_text(&mut value, &mut |text| *text = Template::parse(text).fill(inputs));
        value
    }
}

/// Visits the texts of a message: its `content`, `parts` and `text`, at any depth.
fn each_text(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(entries) => {
            for key in ["content", "parts", "text"] {
                if let Some(value) = entries.get_mut(key) {
                    each_text(value, visit);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The fields of a definition, before they are checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentParts {
    /// The name of the tool that the calling model sees.
    pub name: String,
    /// The description for the calling model.
    pub description: String,
    /// The name for people; the name if it is `None`.
    pub display_name: Option<String>,
    /// The inputs.
    pub inputs: Inputs,
    /// The template of the system prompt.
    pub system_prompt: Option<String>,
    /// The template of the user's first message; [`DEFAULT_QUERY`] if it is `None`.
    pub query: Option<String>,
    /// Messages before it.
    pub initial_messages: Vec<Value>,
    /// The names of tools that it may use.
    pub tools: Vec<String>,
    /// The groups whose tools it may use.
    pub groups: Vec<String>,
    /// The value that it has to give.
    pub output: Option<AgentOutput>,
    /// The limits of one run.
    pub limits: AgentLimits,
    /// The name of its model.
    pub model: Option<String>,
    /// True if an input of an unknown type is a string.
    pub lenient: bool,
}

/// A checked definition of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    name: String,
    description: String,
    display_name: Option<String>,
    parameters: Value,
    system_prompt: Option<Template>,
    query: Template,
    initial_messages: Vec<AgentMessage>,
    tools: Vec<String>,
    groups: Vec<String>,
    output: Option<AgentOutput>,
    limits: AgentLimits,
    model: Option<String>,
}

/// The prompt of an agent for given inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPrompt {
    /// The system prompt, if there is one.
    pub system_prompt: Option<String>,
    /// The first message of the user.
    pub query: String,
    /// The messages before it.
    pub initial_messages: Vec<Value>,
}

impl AgentDefinition {
    /// Checks the fields of a definition.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAgent`] for a missing or invalid field, [`Error::UnsupportedInput`] for an input of an unknown type,
    /// [`Error::InvalidSchema`] for invalid inputs or an invalid output.
    pub fn new(parts: AgentParts) -> Result<Self> {
        let refused = |reason: &str| Error::InvalidAgent { name: parts.name.clone(), reason: reason.to_owned() };
        if parts.name.trim().is_empty() {
            return Err(refused("missing `name`"));
        }
        check_name(&parts.name)?;
        if parts.description.trim().is_empty() {
            return Err(refused("missing `description`"));
        }
        parts.limits.check().map_err(refused)?;
        for message in &parts.initial_messages {
            if message.get("role").and_then(Value::as_str).is_none() {
                return Err(refused("`initial_messages`: expected objects with a `role` and a `content`"));
            }
        }
        if let Some(output) = &parts.output {
            if output.name.trim().is_empty() {
                return Err(refused("`output`: missing `name`"));
            }
            Checker::compile(&output.schema)?;
        }
        let parameters = parts.inputs.parameters(parts.lenient)?;
        Ok(Self {
            name: parts.name,
            description: parts.description,
            display_name: parts.display_name,
            parameters,
            system_prompt: parts.system_prompt.as_deref().map(Template::parse),
            query: Template::parse(parts.query.as_deref().unwrap_or(DEFAULT_QUERY)),
            initial_messages: parts.initial_messages.into_iter().map(|value| AgentMessage { value }).collect(),
            tools: parts.tools,
            groups: parts.groups,
            output: parts.output,
            limits: parts.limits,
            model: parts.model,
        })
    }

    /// The name of the tool that the calling model sees.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name for people.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// The description for the calling model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of the inputs, which the calling model sees.
    #[must_use]
    pub fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// The template of the system prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_ref().map(Template::source)
    }

    /// The template of the user's first message.
    #[must_use]
    pub fn query(&self) -> &str {
        self.query.source()
    }

    /// The messages before it, with templates.
    #[must_use]
    pub fn initial_messages(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.initial_messages.iter().map(|message| &message.value)
    }

    /// The names of the tools that it may use.
    #[must_use]
    pub fn tools(&self) -> &[String] {
        &self.tools
    }

    /// The groups whose tools it may use.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The value that it has to give.
    #[must_use]
    pub fn output(&self) -> Option<&AgentOutput> {
        self.output.as_ref()
    }

    /// The limits of one run.
    #[must_use]
    pub fn limits(&self) -> AgentLimits {
        self.limits
    }

    /// The name of its model.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Fills in the templates. An input that is missing has the default in the schema, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::MissingInputs`] with all inputs that are missing.
    pub fn render(&self, inputs: &Map<String, Value>) -> Result<AgentPrompt> {
        let mut inputs = inputs.clone();
        for (name, property) in self.parameters["properties"].as_object().into_iter().flatten() {
            if let Some(default) = property.get("default").filter(|_| !inputs.contains_key(name)) {
                inputs.insert(name.clone(), default.clone());
            }
        }
        let messages: Vec<Template> = self.initial_messages.iter().flat_map(AgentMessage::templates).collect();
        refuse_missing(self.system_prompt.iter().chain([&self.query]).chain(&messages), &inputs)?;
        Ok(AgentPrompt {
            system_prompt: self.system_prompt.as_ref().map(|template| template.fill(&inputs)),
            query: self.query.fill(&inputs),
            initial_messages: self.initial_messages.iter().map(|message| message.fill(&inputs)).collect(),
        })
    }
}
