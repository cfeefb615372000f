//! The addresses that a client may connect to: no URL and no name leads to a private network, unless that is allowed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Checks the scheme of a URL, and its host if that is an address.
pub(super) fn check_url(url: &Url, allow_private: bool) -> Result<(), String> {
    let address = match url.host() {
        Some(url::Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(url::Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(url::Host::Domain(_)) => None,
        None => return Err("the URL has no host".to_owned()),
    };
    if url.scheme() != "https" && !is_loopback_host(url) && !allow_private {
        // The rest of the URL may have a secret.
        let origin = url.origin().ascii_serialization();
        return Err(format!("`{origin}` must be an `https` URL, because its host is not this machine"));
    }
    match address {
        Some(address) if !address.is_loopback() && is_private(address) && !allow_private => {
            Err(format!("the address {address} is private; allow private addresses to use it"))
        }
        _ => Ok(()),
    }
}

/// True if the host of a URL is this machine.
pub(super) fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => is_loopback_name(name),
        None => false,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// True for an address that is not a public one: loopback, private, link-local, shared, documentation or reserved.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(|| is_private_v6(address), is_private_v4),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || (first & 0xfe00) == 0xfc00
        || (first & 0xffc0) == 0xfe80
        || (first & 0xffc0) == 0xfec0
        // Addresses that contain one of IPv4.
        || address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
        || first == 0x2002
        || address.segments()[..6] == [0; 6]
}

/// Finds the addresses of a name.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolves names, and drops the addresses that are not allowed. The connection is made to the addresses that are left: the name is
/// not resolved again, so that its owner cannot give another one after the check.
#[derive(Clone)]
pub(super) struct Resolver {
    allow_private: bool,
    lookup: Lookup,
}

impl Resolver {
    /// The resolver of the system.
    pub(super) fn new(allow_private: bool) -> Self {
        let lookup = |name: String| async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed();
        Self { allow_private, lookup: Arc::new(lookup) }
    }

    fn is_allowed(&self, is_loopback_name: bool, address: IpAddr) -> bool {
        self.allow_private || is_loopback_name == address.is_loopback() && (is_loopback_name || !is_private(address))
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let is_loopback = is_loopback_name(name.as_str());
            let mut found = (this.lookup)(name.as_str().to_owned()).await?;
            found.retain(|address| this.is_allowed(is_loopback, address.ip()));
            if found.is_empty() {
                let text = format!("`{}` has no address that is allowed; private addresses are not", name.as_str());
                return Err(text.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use reqwest::Client;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    /// A resolver with an answer for each time that it is asked; the last one is repeated.
    fn scripted(allow_private: bool, answers: &[&[&str]]) -> (Resolver, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let answers: Vec<_> = answers.iter().map(|answer| addresses(answer)).collect();
        let count = asked.clone();
        let lookup = move |_: String| {
            let number = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            std::future::ready(Ok(answers[number].clone())).boxed()
        };
        (Resolver { allow_private, lookup: Arc::new(lookup) }, asked)
    }

    async fn resolved(allow_private: bool, name: &str, answer: &[&str]) -> Result<Vec<SocketAddr>, String> {
        let found = scripted(allow_private, &[answer]).0.resolve(name.parse().unwrap()).await;
        found.map(Iterator::collect).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_name_leads_to_no_private_address_unless_that_is_allowed() {
        let private = [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "198.18.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
        ];
        for address in private {
            let refused = resolved(false, "tools.example", &[address]).await;

            assert!(refused.is_err_and(|reason| reason.contains("`tools.example` has no address")), "{address}");
            assert_eq!(resolved(true, "tools.example", &[address]).await, Ok(addresses(&[address])));
        }
    }

    #[tokio::test]
    async fn public_addresses_are_left_of_a_mixed_answer() {
        let mixed = ["10.0.0.1", "93.184.215.14", "::1", "2606:2800:21f::1"];

        let left = resolved(false, "tools.example", &mixed).await;

        assert_eq!(left, Ok(addresses(&["93.184.215.14", "2606:2800:21f::1"])));
    }

    #[tokio::test]
    async fn a_name_of_this_machine_leads_to_no_other_one() {
        assert_eq!(resolved(false, "localhost", &["127.0.0.1", "::1"]).await, Ok(addresses(&["127.0.0.1", "::1"])));
        assert!(resolved(false, "localhost", &["93.184.215.14"]).await.is_err());
        assert!(resolved(false, "app.localhost", &["10.0.0.1"]).await.is_err());
    }

    fn client(resolver: Resolver) -> Client {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Client::builder().tls_backend_preconfigured(tls).no_proxy().dns_resolver(Arc::new(resolver)).build().unwrap()
    }

    /// Answers each connection with its own address, and counts them.
    async fn server(address: &str, port: u16) -> (u16, Arc<Mutex<usize>>) {
        let listener = TcpListener::bind((address, port)).await.unwrap();
        let (port, served) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(0)));
        let (text, count) = (address.to_owned(), served.clone());
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                let _ = connection.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
                let _ = connection.write_all(format!("{head}{text}").as_bytes()).await;
            }
        });
        (port, served)
    }

    #[tokio::test]
    async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
        let (port, _) = server("127.0.0.1", 0).await;
        let (_, other) = server("127.0.0.2", port).await;
        // A name whose owner changes its address after the first answer.
        let (resolver, asked) = scripted(true, &[&["127.0.0.1"], &["127.0.0.2"]]);
        let client = client(resolver);

        let response = client.get(format!("http://rebind.example:{port}/")).send().await.unwrap();

        assert_eq!(response.text().await.unwrap(), "127.0.0.1");
        assert_eq!((asked.load(Ordering::SeqCst), *other.lock().unwrap()), (1, 0));
    }

    #[tokio::test]
    async fn a_name_that_changes_to_a_private_address_is_refused_when_it_is_resolved_again() {
        let (port, served) = server("127.0.0.1", 0).await;
        let (resolver, _) = scripted(false, &[&["127.0.0.1"]]);
        let client = client(resolver);

        let refused = client.get(format!("http://rebind.example:{port}/")).send().await.unwrap_err();

        assert!(refused.is_connect());
        assert_eq!(*served.lock().unwrap(), 0);
    }
}
