//! Sets pyo3's `cfg` flags, which name the version of CPython, for the bindings.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
