//! mimalloc as the allocator of the extension: each registration makes many small allocations, in which the C library's
//! allocator is slower.
//!
//! It asks for no huge pages (`no_thp`): each thread would take memory in steps of 2 MiB, most of which it never uses.
//!
//! The crate `mimalloc` passes an alignment with every allocation, which costs as much as the allocation itself.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// The allocator.
pub(super) struct Allocator;

/// The alignment of every allocation of mimalloc, the smallest included.
const MIN_ALIGNMENT: usize = size_of::<usize>();

// SAFETY: mimalloc is a general allocator that any thread may call; blocks of any alignment are freed in the same way.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout with a size above zero.
        unsafe {
            if layout.align() <= MIN_ALIGNMENT {
                mi_malloc(layout.size()).cast()
            } else {
                mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout with a size above zero.
        unsafe {
            if layout.align() <= MIN_ALIGNMENT {
                mi_zalloc(layout.size()).cast()
            } else {
                mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller passes a block of this allocator.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller passes a block of this allocator, its layout, and a size above zero.
        unsafe {
            if layout.align() <= MIN_ALIGNMENT {
                mi_realloc(block.cast(), size).cast()
            } else {
                mi_realloc_aligned(block.cast(), size, layout.align()).cast()
            }
        }
    }
}
