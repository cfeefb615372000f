//! The server that a client connects to: a command to start, or a URL; and the configuration files that name them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

/// The server that a client connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program that is started, and speaks over its standard input and output.
    Command(CommandTarget),
    /// A server that speaks streamable HTTP.
    Http(HttpTarget),
}

/// A program that is a server.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandTarget {
    /// The program, found through `PATH` if it has no slash. It is never run by a shell.
    pub program: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Variables that are added to the few that the program inherits, such as `PATH` and `HOME`.
    pub env: Vec<(String, String)>,
    /// The working folder; by default that of this process.
    pub cwd: Option<PathBuf>,
}

/// A server with a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// The URL: `https`, or `http` for a host of this machine.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The token of the `Authorization` header.
    pub bearer: Option<String>,
    /// A PEM file with the certificates of the only authorities that are trusted; by default those that the system trusts.
    pub ca: Option<PathBuf>,
    /// The longest time to make a TCP and TLS connection.
    pub connect_timeout: Duration,
    /// True if the host may have an address of a private network, and may be spoken to without TLS.
    pub allow_private_addresses: bool,
}

/// Variables and headers are often secrets, so only their names are shown.
fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

impl fmt::Debug for CommandTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut target = formatter.debug_struct("CommandTarget");
        target.field("program", &self.program).field("args", &self.args).field("env", &names(&self.env));
        target.field("cwd", &self.cwd).finish()
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut target = formatter.debug_struct("HttpTarget");
        target.field("url", &self.url).field("headers", &names(&self.headers));
        target.field("ca", &self.ca);
        target.field("allow_private_addresses", &self.allow_private_addresses).finish_non_exhaustive()
    }
}

/// The reason why a target or a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// The text is neither a URL nor a command.
    #[error("invalid target: {reason}")]
    Text {
        /// The mistake.
        reason: String,
    },
    /// An entry of a configuration is invalid.
    #[error("invalid configuration of MCP server `{server}`: `{key}` {reason}")]
    Entry {
        /// The name of the server.
        server: String,
        /// The key.
        key: String,
        /// The mistake.
        reason: String,
    },
    /// The configuration is invalid as a whole.
    #[error("invalid configuration of MCP servers: {reason}")]
    Config {
        /// The mistake.
        reason: String,
    },
}

impl CommandTarget {
    /// Makes a target of a program without arguments.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None }
    }
}

impl HttpTarget {
    /// Makes a target of a URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            bearer: None,
            ca: None,
            connect_timeout: Duration::from_secs(10),
            allow_private_addresses: false,
        }
    }
}

impl Target {
    /// Reads a URL, or a command line that is split into words as a POSIX shell does. No shell runs it: variables, globs and
    /// operators have no meaning.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget::Text`] for an empty text, an open quotation mark, or a URL that is not of HTTP.
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        let text = text.trim();
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => Ok(Self::Http(HttpTarget::new(text))),
            Some(scheme) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) => {
                Err(InvalidTarget::Text { reason: format!("expected an `http` or `https` URL, got `{scheme}`") })
            }
            _ => {
                let mut words = split_words(text)?.into_iter();
                let program = words.next().ok_or_else(|| InvalidTarget::Text { reason: "it is empty".to_owned() })?;
                Ok(Self::Command(CommandTarget { args: words.collect(), ..CommandTarget::new(program) }))
            }
        }
    }
}

/// Splits a command line into words, with the quotation marks and backslashes of a POSIX shell.
fn split_words(text: &str) -> Result<Vec<String>, InvalidTarget> {
    let open = |mark: char| InvalidTarget::Text { reason: format!("a {mark} quotation mark is not closed") };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or_else(|| open('\''))? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or_else(|| open('"'))? {
                        '"' => break,
                        // Inside double quotation marks a backslash escapes only these.
                        '\\' => match letters.next_if(|letter| "$`\"\\\n".contains(*letter)) {
                            Some('\n') => {}
                            Some(letter) => word.push(letter),
                            None => word.push('\\'),
                        },
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => match letters.next() {
                Some('\n') => {}
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err(InvalidTarget::Text { reason: "it ends with a backslash".to_owned() }),
            },
            letter if letter.is_ascii_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads the `mcpServers` of a configuration, by name: `{"mcpServers": {"files": {"command": "mcp-files", "args": ["/tmp"]}}}`.
///
/// An entry has `command` with optional `args`, `env` and `cwd`, or `url` with optional `headers` and `ca`; `type` may say which.
/// Entries with `"disabled": true` are left out. Other keys belong to other programs and are ignored.
///
/// # Errors
///
/// [`InvalidTarget`] names the server and the key.
pub fn read_config(config: &Value) -> Result<IndexMap<String, Target>, InvalidTarget> {
    let servers = config
        .get("mcpServers")
        .ok_or_else(|| InvalidTarget::Config { reason: "expected an object with the key `mcpServers`".to_owned() })?;
    let servers = servers.as_object().ok_or_else(|| InvalidTarget::Config {
        reason: "`mcpServers` must be an object of servers by name".to_owned(),
    })?;
    let mut targets = IndexMap::with_capacity(servers.len());
    for (name, entry) in servers {
        let entry = Entry { server: name, entry };
        if entry.entry.get("disabled") != Some(&Value::Bool(true)) {
            targets.insert(name.clone(), entry.target()?);
        }
    }
    Ok(targets)
}

/// One server of a configuration.
struct Entry<'a> {
    server: &'a str,
    entry: &'a Value,
}

impl Entry<'_> {
    fn target(&self) -> Result<Target, InvalidTarget> {
        if !self.entry.is_object() {
            return Err(InvalidTarget::Config { reason: format!("server `{}` must be an object", self.server) });
        }
        let kind_key = if self.entry.get("type").is_some() { "type" } else { "transport" };
        let kind = self.text(kind_key)?;
        match (kind.as_deref(), self.text("command")?, self.text("url")?) {
            (Some("sse"), ..) => Err(self.invalid(
                kind_key,
                "is `sse`, the transport before streamable HTTP: pass a client of the Python package `mcp` for it",
            )),
            (None | Some("stdio"), Some(program), None) => Ok(Target::Command(CommandTarget {
                program,
                args: self.texts("args")?,
                env: self.pairs("env")?,
                cwd: self.text("cwd")?.map(PathBuf::from),
            })),
            (None | Some("http" | "streamable-http" | "streamable_http" | "streamableHttp"), None, Some(url)) => {
                let target = Target::parse(&url).map_err(|error| self.invalid("url", error.to_string()))?;
                let Target::Http(target) = target else {
                    return Err(self.invalid("url", "must be an `http` or `https` URL"));
                };
                let (headers, ca) = (self.pairs("headers")?, self.text("ca")?.map(PathBuf::from));
                Ok(Target::Http(HttpTarget { headers, ca, ..target }))
            }
            (_, Some(_), Some(_)) => Err(self.invalid("command", "and `url` are both given")),
            (_, None, None) => Err(self.invalid("command", "or `url` is missing")),
            (Some("stdio"), None, _) => Err(self.invalid("command", "is missing")),
            (Some(kind), _, None) if kind.to_ascii_lowercase().contains("http") => {
                Err(self.invalid("url", "is missing"))
            }
            (Some(kind), ..) => Err(self.invalid(kind_key, format!("must be `stdio` or `http`, got `{kind}`"))),
        }
    }

    fn invalid(&self, key: &str, reason: impl Into<String>) -> InvalidTarget {
        InvalidTarget::Entry { server: self.server.to_owned(), key: key.to_owned(), reason: reason.into() }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.entry.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, InvalidTarget> {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| self.invalid(key, "must be text"));
        self.value(key).map(text).transpose()
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, InvalidTarget> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let texts =
            value.as_array().and_then(|values| values.iter().map(|text| Some(text.as_str()?.to_owned())).collect());
        texts.ok_or_else(|| self.invalid(key, "must be a list of texts"))
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, InvalidTarget> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let pair = |(name, text): (&String, &Value)| Some((name.clone(), text.as_str()?.to_owned()));
        let pairs = value.as_object().and_then(|pairs| pairs.iter().map(pair).collect());
        pairs.ok_or_else(|| self.invalid(key, "must be an object of texts"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        split_words(text).unwrap()
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_splits_it() {
        assert_eq!(words(r#"npx -y  'a b' "c \" $d" e\ f ''"#), ["npx", "-y", "a b", "c \" $d", "e f", ""]);
        assert_eq!(words(r#"a"b"'c'd "\n""#), ["abcd", r"\n"]);
    }

    #[test]
    fn no_operator_of_a_shell_has_a_meaning() {
        assert_eq!(words("a; b && c | d > $E `f`"), ["a;", "b", "&&", "c", "|", "d", ">", "$E", "`f`"]);
    }

    #[test]
    fn an_open_quotation_mark_and_an_empty_text_are_refused() {
        for text in ["a 'b", "a \"b", "a \\", "", "  "] {
            assert!(matches!(Target::parse(text), Err(InvalidTarget::Text { .. })), "{text}");
        }
    }

    #[test]
    fn a_text_is_a_url_or_a_command() {
        let Ok(Target::Http(http)) = Target::parse("HTTPS://example.com/mcp") else { panic!() };
        let Ok(Target::Command(command)) = Target::parse("uvx mcp-server --url https://example.com") else { panic!() };

        assert_eq!(http.url, "HTTPS://example.com/mcp");
        assert_eq!((command.program.as_str(), command.args.len()), ("uvx", 3));
        assert!(Target::parse("ftp://example.com").is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let http = HttpTarget {
            headers: vec![("X-Key".to_owned(), "secret".to_owned())],
            bearer: Some("secret".to_owned()),
            ..HttpTarget::new("https://example.com")
        };
        let command =
            CommandTarget { env: vec![("KEY".to_owned(), "secret".to_owned())], ..CommandTarget::new("server") };

        let shown = format!("{:?} {:?}", Target::Http(http), Target::Command(command));

        assert!(shown.contains("X-Key") && shown.contains("KEY") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_configuration_is_read_in_its_order() {
        let config = json!({"mcpServers": {
            "files": {"command": "mcp-files", "args": ["/tmp"], "env": {"A": "b"}, "cwd": "/"},
            "off": {"command": "x", "disabled": true},
            "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "k"}, "timeout": 5},
        }});

        let targets = read_config(&config).unwrap();

        assert_eq!(targets.keys().collect::<Vec<_>>(), ["files", "web"]);
        let Target::Command(files) = &targets["files"] else { panic!() };
        assert_eq!((files.args.as_slice(), files.env[0].1.as_str()), (["/tmp".to_owned()].as_slice(), "b"));
        let Target::Http(web) = &targets["web"] else { panic!() };
        assert_eq!(web.headers, [("X-Key".to_owned(), "k".to_owned())]);
    }

    #[test]
    fn a_mistake_in_a_configuration_names_the_server_and_the_key() {
        let cases = [
            (json!({"command": 1}), "`command` must be text"),
            (json!({"command": "a", "args": "b"}), "`args` must be a list of texts"),
            (json!({"command": "a", "env": {"A": 1}}), "`env` must be an object of texts"),
            (json!({"command": "a", "url": "https://b"}), "`command` and `url` are both given"),
            (json!({}), "`command` or `url` is missing"),
            (json!({"type": "sse", "url": "https://b"}), "`type` is `sse`"),
            (json!({"type": "pigeon", "url": "https://b"}), "`type` must be `stdio` or `http`, got `pigeon`"),
            (json!({"type": "http", "command": "b"}), "`url` is missing"),
            (json!({"url": "ftp://b"}), "`url` invalid target: expected an `http` or `https` URL"),
        ];

        for (entry, expected) in cases {
            let error = read_config(&json!({"mcpServers": {"x": entry}})).unwrap_err().to_string();

            assert!(error.contains("server `x`") && error.contains(expected), "{error}");
        }
    }
}
