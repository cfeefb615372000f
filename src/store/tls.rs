//! TLS for connections to PostgreSQL: rustls, with the certificates that the system trusts.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{Connect, TlsConnector, client};

/// Encrypts connections, and verifies that the certificate is one for the host of the URL.
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Self(Arc::new(builder.with_platform_verifier()?.with_no_client_auth())))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        Ok(Handshake { config: self.0.clone(), host: ServerName::try_from(host.to_owned())? })
    }
}

pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Handshaking<S>;

    fn connect(self, stream: S) -> Handshaking<S> {
        Handshaking(TlsConnector::from(self.config).connect(self.host, stream))
    }
}

pub(super) struct Handshaking<S>(Connect<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Handshaking<S> {
    type Output = io::Result<Encrypted<S>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_ok(Encrypted)
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is verified, so the password needs no binding to it.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
