//! The descriptor through which another thread wakes an event loop: an eventfd on Linux, a pipe on other Unixes.

#[cfg(unix)]
pub(super) use unix::Bell;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    /// Rung by any thread, heard by the loop that watches its descriptor.
    pub(in super::super) struct Bell {
        heard: OwnedFd,
        #[cfg(not(target_os = "linux"))]
        rung: OwnedFd,
    }

    impl Bell {
        #[cfg(target_os = "linux")]
        pub(in super::super) fn new() -> io::Result<Self> {
            // SAFETY: plain system call.
            let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: a fresh descriptor that nobody else owns.
            Ok(Bell { heard: unsafe { OwnedFd::from_raw_fd(fd) } })
        }

        #[cfg(not(target_os = "linux"))]
        pub(in super::super) fn new() -> io::Result<Self> {
            let mut fds = [0; 2];
            // SAFETY: the call writes two descriptors into the array.
            if unsafe { libc::pipe(fds.as_mut_ptr()) } < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: fresh descriptors that nobody else owns.
            let (heard, rung) = unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
            for fd in fds {
                // SAFETY: flags of a descriptor that is ours.
                let set = unsafe {
                    libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) < 0
                        || libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) < 0
                };
                if set {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(Bell { heard, rung })
        }

        /// The descriptor to watch for reading.
        pub(in super::super) fn fd(&self) -> RawFd {
            self.heard.as_raw_fd()
        }

        /// Makes the descriptor readable; a full pipe already is.
        pub(in super::super) fn ring(&self) {
            #[cfg(target_os = "linux")]
            let fd = &self.heard;
            #[cfg(not(target_os = "linux"))]
            let fd = &self.rung;
            let one = 1_u64.to_ne_bytes();
            // SAFETY: eight readable bytes.
            unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }

        /// Makes the descriptor silent again.
        pub(in super::super) fn silence(&self) {
            let mut bytes = [0_u8; 8];
            // SAFETY: eight writable bytes; the descriptor does not block.
            while unsafe { libc::read(self.fd(), bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {
                if cfg!(target_os = "linux") {
                    break; // one read empties an eventfd
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Bell;

        fn readable(bell: &Bell) -> bool {
            let mut poll = libc::pollfd { fd: bell.fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, no waiting.
            unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
        }

        #[test]
        fn a_bell_rung_twice_is_silenced_once() -> std::io::Result<()> {
            let bell = Bell::new()?;
            assert!(!readable(&bell));

            bell.ring();
            bell.ring();
            assert!(readable(&bell));

            bell.silence();
            assert!(!readable(&bell));
            Ok(())
        }
    }
}
