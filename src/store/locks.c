/* Locks of SQLite that belong to open file descriptions, not to the process.
 *
 * A process may hold another copy of SQLite, as Python's `sqlite3` is. POSIX locks are of no use between the two: those of one
 * process never conflict, and are all dropped when any descriptor of the file is closed. Then the other copy takes itself for the
 * last user and removes the journal, or both copies write at once. So this copy locks by open file descriptions: to the kernel it
 * is another party than the rest of the process, and the copies keep apart as two processes do.
 *
 * SQLite expects the rules of POSIX among its own connections: a lock taken through one descriptor is released through
 * another. Therefore all descriptors of a file share the locks of the first one, its owner.
 *
 * To close a descriptor drops the POSIX locks that the rest of the process has on the file, which would hurt the other copy. So
 * the descriptors of a file are closed together, under an exclusive lock that proves that there are no such locks. While others
 * use the file they are kept, without locks, for the next connection to it.
 *
 * A forked child closes what it inherits: it must not share the locks of its parent.
 *
 * The library installs this when it is loaded; see `xSetSystemCall` in the documentation of SQLite. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite3.h"

struct descriptor {
    int fd;
    int access;
    int is_used; /* by a connection */
    struct descriptor *next;
};

struct file {
    dev_t device;
    ino_t inode;
    int is_by_description; /* false where the system has no such locks: Linux before 3.15, some sandboxes and file systems */
    struct descriptor *owner; /* of the locks; the first of the list */
    struct file *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;

static struct descriptor *find(int fd, struct file **of) {
    for (*of = files; *of; *of = (*of)->next)
        for (struct descriptor *one = (*of)->owner; one; one = one->next)
            if (one->fd == fd)
                return one;
    return NULL;
}

/* Sets or removes the lock of the whole file; true if that was possible. */
static int lock_whole(int fd, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* True if a file can be locked by open file descriptions. */
static int can_lock(int fd) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 || errno != EINVAL;
}

static int is_in_use(const struct file *file) {
    for (struct descriptor *one = file->owner; one; one = one->next)
        if (one->is_used)
            return 1;
    return 0;
}

/* Closes the descriptors of a file that no connection uses. False if that would drop locks of the rest of the process. */
static int close_unused(const struct file *file) {
    struct descriptor *owner = file->owner, *other = owner->next;
    struct stat status;
    int is_removed = fstat(owner->fd, &status) == 0 && status.st_nlink == 0;
    /* No lock of another party can be taken before the last close, which releases this one. */
    int is_alone = lock_whole(owner->fd, F_WRLCK) || (errno != EAGAIN && errno != EACCES);
    if (!is_alone && !is_removed) {
        lock_whole(owner->fd, F_UNLCK);
        return 0;
    }
    while (other) {
        struct descriptor *next = other->next;
        close(other->fd);
        free(other);
        other = next;
    }
    close(owner->fd);
    free(owner);
    return 1;
}

/* Closes all that can be closed. */
static void sweep(void) {
    struct file **at = &files;
    while (*at) {
        struct file *file = *at;
        if (!is_in_use(file) && close_unused(file)) {
            *at = file->next;
            free(file);
        } else {
            at = &file->next;
        }
    }
}

static struct file *file_of(const struct stat *status) {
    struct file *file = files;
    while (file && (file->device != status->st_dev || file->inode != status->st_ino))
        file = file->next;
    return file;
}

/* A descriptor of the file that no connection uses. */
static int reuse(const char *path, int flags) {
    struct stat status;
    if ((flags & (O_EXCL | O_TRUNC)) || lstat(path, &status) != 0)
        return -1;
    struct file *file = file_of(&status);
    for (struct descriptor *one = file ? file->owner : NULL; one; one = one->next)
        if (!one->is_used && one->access == (flags & O_ACCMODE)) {
            one->is_used = 1;
            return one->fd;
        }
    return -1;
}

/* Takes note of a new descriptor; true if there is memory for it. */
static int add(int fd, int flags, const struct stat *status) {
    struct file *file = file_of(status);
    struct descriptor *new = calloc(1, sizeof *new);
    if (new && !file && (file = calloc(1, sizeof *file))) {
        file->device = status->st_dev;
        file->inode = status->st_ino;
        file->is_by_description = can_lock(fd); /* decided once: locks of both kinds conflict with each other */
        file->next = files;
        files = file;
    }
    if (!new || !file) {
        free(new);
        return 0;
    }
    new->fd = fd;
    new->access = flags & O_ACCMODE;
    new->is_used = 1;
    struct descriptor **end = &file->owner;
    while (*end)
        end = &(*end)->next;
    *end = new;
    return 1;
}

static int open_file(const char *path, int flags, int mode) {
    struct stat status;
    pthread_mutex_lock(&mutex);
    sweep();
    int fd = reuse(path, flags);
    pthread_mutex_unlock(&mutex);
    if (fd >= 0)
        return fd;
    fd = open(path, flags, mode);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return fd;
    pthread_mutex_lock(&mutex);
    int is_added = add(fd, flags, &status);
    pthread_mutex_unlock(&mutex);
    if (!is_added) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    return fd;
}

static int close_file(int fd) {
    struct file *file;
    pthread_mutex_lock(&mutex);
    struct descriptor *one = find(fd, &file);
    if (one) {
        one->is_used = 0;
        sweep();
    }
    pthread_mutex_unlock(&mutex);
    return one ? 0 : close(fd);
}

static int description_command(int command) {
    switch (command) {
    case F_GETLK:
        return F_OFD_GETLK;
    case F_SETLK:
        return F_OFD_SETLK;
    case F_SETLKW:
        return F_OFD_SETLKW;
    default:
        return -1;
    }
}

static int control_file(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int by_description = description_command(command), owner = -1;
    struct file *file;
    pthread_mutex_lock(&mutex);
    if (by_description != -1 && find(fd, &file) && file->is_by_description)
        owner = file->owner->fd; /* stays open for as long as `fd` is */
    pthread_mutex_unlock(&mutex);
    if (owner == -1)
        return fcntl(fd, command, argument);
    struct flock *lock = argument;
    lock->l_pid = 0;
    return fcntl(owner, by_description, lock);
}

static void before_fork(void) {
    pthread_mutex_lock(&mutex);
}

static void after_fork(void) {
    pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void) {
    /* The list is not freed: another thread may have been in the allocator. */
    for (struct file *file = files; file; file = file->next)
        for (struct descriptor *one = file->owner; one; one = one->next)
            close(one->fd);
    files = NULL;
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void install(void) {
    sqlite3_vfs *unix_files = sqlite3_vfs_find("unix");
    if (!unix_files || pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
        return;
    unix_files->xSetSystemCall(unix_files, "open", (sqlite3_syscall_ptr)open_file);
    unix_files->xSetSystemCall(unix_files, "close", (sqlite3_syscall_ptr)close_file);
    unix_files->xSetSystemCall(unix_files, "fcntl", (sqlite3_syscall_ptr)control_file);
}
