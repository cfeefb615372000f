//! The memory of the extension: many small pieces at each registration, which the C library makes half as fast again.
//!
//! The crate `mimalloc` would ask for an alignment each time, which costs as much as the memory itself.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

pub(super) struct Allocator;

/// What mimalloc aligns every piece to, the smallest included.
const ALWAYS: usize = size_of::<usize>();

// SAFETY: mimalloc is a general allocator that any thread may call; pieces of any alignment are freed in the same way.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller asks for a size above zero.
        unsafe {
            if layout.align() <= ALWAYS {
                mi_malloc(layout.size()).cast()
            } else {
                mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if layout.align() <= ALWAYS {
                mi_zalloc(layout.size()).cast()
            } else {
                mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, _: Layout) {
        // SAFETY: the piece came from here.
        unsafe { mi_free(piece.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if layout.align() <= ALWAYS {
                mi_realloc(piece.cast(), size).cast()
            } else {
                mi_realloc_aligned(piece.cast(), size, layout.align()).cast()
            }
        }
    }
}
