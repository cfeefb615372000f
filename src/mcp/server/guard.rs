//! The checks of an HTTP request before it is read: the host that it names, the page that it comes from, and its token.

use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use http::{StatusCode, Uri};
use sha2::{Digest, Sha256};

/// The hosts by which a program on the same machine reaches a server.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The rules for requests.
pub(super) struct Guard {
    /// The allowed hosts, each with the port if only one is allowed.
    hosts: Vec<(String, Option<u16>)>,
    /// The allowed origins, in the form that browsers send.
    origins: Vec<String>,
    /// The hash of the token.
    token: Option<[u8; 32]>,
}

/// A request that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The name of the host is not one of the server: a page may have been rebound to this machine.
    Host,
    /// The request comes from a page that is not allowed.
    Origin,
    /// The token is missing or wrong.
    Token,
}

impl Refused {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Host => "Forbidden: the Host is not allowed",
            Self::Origin => "Forbidden: the Origin is not allowed",
            Self::Token => "Unauthorized: the bearer token is missing or wrong",
        }
    }
}

impl Guard {
    /// Makes the rules of a server. Without allowed hosts, those of this machine are allowed.
    pub(super) fn new(hosts: &[String], origins: &[String], token: Option<&str>, port: u16) -> Self {
        let is_local = hosts.is_empty();
        let hosts: Vec<_> = if is_local {
            LOOPBACK.iter().map(|host| ((*host).to_owned(), None)).collect()
        } else {
            hosts.iter().map(|host| split_port(host)).collect()
        };
        let mut origins: Vec<String> = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        if is_local {
            // Only the server itself can have sent a page of its own origin.
            origins.extend(LOOPBACK.iter().map(|host| format!("http://{host}:{port}")));
        }
        Self { hosts, origins, token: token.map(digest) }
    }

    /// Checks everything but the token.
    ///
    /// # Errors
    ///
    /// The first reason to refuse the request.
    pub(super) fn check_source(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let mut named = headers.get_all(HOST).iter();
        let host = match (uri.authority(), named.next(), named.next()) {
            (Some(authority), _, None) => authority.as_str(),
            (None, Some(host), None) => host.to_str().map_err(|_| Refused::Host)?,
            _ => return Err(Refused::Host),
        };
        let (host, port) = split_port(host);
        let allows = |(name, only): &(String, Option<u16>)| *name == host && only.is_none_or(|only| port == Some(only));
        if !self.hosts.iter().any(allows) {
            return Err(Refused::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if self.allows_origin(origin) => Ok(()),
            _ => Err(Refused::Origin),
        }
    }

    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        let is_it = |origin: &str| self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        // A page without an origin, such as a sandboxed frame, can be any page.
        origin.to_str().is_ok_and(|origin| origin != "null" && is_it(origin))
    }

    /// Checks the token, in a time that does not depend on how much of it is right.
    ///
    /// # Errors
    ///
    /// [`Refused::Token`].
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(expected) = &self.token else { return Ok(()) };
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else { return Err(Refused::Token) };
        let given = given.to_str().map_err(|_| Refused::Token)?;
        let Some((scheme, token)) = given.split_once(' ') else { return Err(Refused::Token) };
        let difference = digest(token.trim()).iter().zip(expected).fold(0, |sum, (one, other)| sum | (one ^ other));
        if scheme.eq_ignore_ascii_case("bearer") && difference == 0 { Ok(()) } else { Err(Refused::Token) }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A host in lower case, and its port.
fn split_port(authority: &str) -> (String, Option<u16>) {
    let authority = authority.trim().to_ascii_lowercase();
    let split = authority.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    match split.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?))) {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(guard: &Guard, headers: &[(http::HeaderName, &str)]) -> Result<(), Refused> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        guard.check_source(&Uri::from_static("/mcp"), &headers)?;
        guard.check_token(&headers)
    }

    #[test]
    fn only_hosts_of_this_machine_are_allowed_by_default() {
        let guard = Guard::new(&[], &[], None, 8000);

        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]"] {
            assert_eq!(checked(&guard, &[(HOST, host)]), Ok(()), "{host}");
        }
        for host in ["evil.com", "localhost.evil.com", "127.0.0.1.nip.io", "", "::1", "localhost:99999", "a@localhost"]
        {
            assert_eq!(checked(&guard, &[(HOST, host)]), Err(Refused::Host), "{host}");
        }
        assert_eq!(checked(&guard, &[]), Err(Refused::Host));
        assert_eq!(checked(&guard, &[(HOST, "localhost"), (HOST, "evil.com")]), Err(Refused::Host));
    }

    #[test]
    fn allowed_hosts_replace_those_of_this_machine() {
        let guard = Guard::new(&["tools.example.com:443".to_owned()], &[], None, 8000);

        assert_eq!(checked(&guard, &[(HOST, "tools.example.com:443")]), Ok(()));
        for host in ["tools.example.com", "tools.example.com:80", "localhost", "127.0.0.1"] {
            assert_eq!(checked(&guard, &[(HOST, host)]), Err(Refused::Host), "{host}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let guard = Guard::new(&[], &["https://app.example.com".to_owned()], None, 8000);
        let of = |origin: &str| checked(&guard, &[(HOST, "localhost"), (ORIGIN, origin)]);

        assert_eq!(of("https://app.example.com"), Ok(()));
        assert_eq!(of("http://localhost:8000"), Ok(()));
        for origin in
            ["null", "http://evil.com", "http://app.example.com", "http://localhost:8001", "http://localhost", ""]
        {
            assert_eq!(of(origin), Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn a_token_must_be_whole() {
        let guard = Guard::new(&[], &[], Some("secret"), 8000);
        let with = |value: &str| checked(&guard, &[(HOST, "localhost"), (AUTHORIZATION, value)]);

        assert_eq!(with("Bearer secret"), Ok(()));
        assert_eq!(with("bearer secret"), Ok(()));
        for value in ["Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"] {
            assert_eq!(with(value), Err(Refused::Token), "{value}");
        }
        assert_eq!(checked(&guard, &[(HOST, "localhost")]), Err(Refused::Token));
    }
}
