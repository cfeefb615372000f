/* Attempts of a program to reach out of its sandbox.
 *
 *     attack VICTIM NAME...
 *
 * Makes each of the attempts against the process with the number VICTIM, and writes a line: `NAME permitted`, or `NAME ERRNO`.
 * Attempts that would concern the whole machine are made in a sandbox only: without a filter of system calls their line is
 * `NAME unsafe`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t victim;

static long prlimit_of(pid_t pid)
{
    struct rlimit limit;
    return syscall(SYS_prlimit64, pid, RLIMIT_CORE, NULL, &limit) ?: syscall(SYS_prlimit64, pid, RLIMIT_CORE, &limit, NULL);
}
static long starve(void) { return syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL); }
static long prlimit_other(void) { return prlimit_of(victim); }
static long prlimit_wide(void) { return syscall(SYS_prlimit64, 0x100000000 | victim, RLIMIT_CORE, NULL, &(struct rlimit){0}); }
static long priority_other(void) { return setpriority(PRIO_PROCESS, (id_t)victim, getpriority(PRIO_PROCESS, (id_t)victim)); }
static long priority_group(void) { return setpriority(PRIO_PGRP, (id_t)getpgid(victim), 0); }
static long priority_user(void) { return setpriority(PRIO_USER, 0, 0); }
static long ioprio_other(void) { return syscall(SYS_ioprio_set, 1, victim, 2 << 13 | 4); }
static long ioprio_user(void) { return syscall(SYS_ioprio_set, 3, 0, 2 << 13 | 4); }

static long affinity_of(pid_t pid)
{
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    return sched_setaffinity(pid, sizeof cpus, &cpus);
}
static long affinity_other(void) { return affinity_of(victim); }
static long scheduler_other(void) { return sched_setscheduler(victim, SCHED_OTHER, &(struct sched_param){0}); }
static long schedparam_other(void) { return sched_setparam(victim, &(struct sched_param){0}); }
static long schedattr_other(void)
{
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t rest[3]; } attributes = {48, 0, 0, 0, 0, {0}};
    return syscall(SYS_sched_setattr, victim, &attributes, 0);
}
static long migrate_other(void) { return syscall(SYS_migrate_pages, victim, 1, &(long){1}, &(long){1}); }

static long trace(void) { long result = ptrace(PTRACE_SEIZE, victim, 0, 0); return result; }
static long read_memory(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&victim, 1};
    return process_vm_readv(victim, &here, 1, &there, 1, 0);
}
static long write_memory(void)
{
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)16, 1};
    return process_vm_writev(victim, &here, 1, &there, 1, 0);
}
static long pidfd_open_other(void) { return syscall(434, victim, 0); }
static long pidfd_signal(void) { return syscall(424, -1, 0, NULL, 0); }
static long pidfd_getfd(void) { return syscall(438, -1, 0, 0); }
static long madvise_other(void) { return syscall(440, -1, NULL, 0, 0, 0); }
static long compare(void) { return syscall(SYS_kcmp, getpid(), victim, 1, 0, 0); }
static long signal_other(void) { return kill(victim, 0); }
static long queue_signal(void)
{
    siginfo_t info = {.si_code = SI_QUEUE};
    return syscall(SYS_rt_sigqueueinfo, victim, 0, &info);
}

static long shared_memory(void)
{
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    return id < 0 ? id : shmctl(id, IPC_RMID, NULL);
}
static long attach_memory(void) { return (long)shmat(1 << 20, NULL, 0); }
static long list_memory(void) { return syscall(SYS_shmctl, 0, 14 /* SHM_INFO */, &(char[256]){0}); }
static long semaphores(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    return id < 0 ? id : semctl(id, 0, IPC_RMID);
}
static long messages(void)
{
    int id = msgget(IPC_PRIVATE, 0600);
    return id < 0 ? id : msgctl(id, IPC_RMID, NULL);
}
static long posix_queue(void)
{
    char name[64];
    snprintf(name, sizeof name, "toolcrib-test-%d", getpid()); /* the kernel wants it without the slash */
    long queue = syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, NULL);
    return queue < 0 ? queue : syscall(SYS_mq_unlink, name);
}
static long key(void) { return syscall(SYS_add_key, "user", "toolcrib-test", "x", 1, -2 /* of the process */); }
static long keyring(void) { return syscall(SYS_keyctl, 0, -3, 0); }

static long uring(void) { return syscall(425, 1, &(char[256]){0}); }
static long bpf(void) { return syscall(SYS_bpf, 0, &(char[64]){0}, 64); }
static long perf(void) { return syscall(SYS_perf_event_open, &(char[128]){0}, 0, -1, -1, 0); }

static long in_child(long (*attempt)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(attempt() < 0 ? errno : 0);
    waitpid(child, &status, 0);
    errno = WEXITSTATUS(status);
    return errno == 0 ? 0 : -1;
}
static long do_unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long do_unshare_hostname(void) { return unshare(CLONE_NEWUTS); }
static long do_unshare_time(void) { return unshare(0x80); }
/* A mount over a folder of its own, of which nothing stays if it succeeds. */
static long do_mount(void)
{
    char folder[] = "listed/mounted-XXXXXX";
    long result = mkdtemp(folder) == NULL ? -1 : mount("none", folder, "tmpfs", 0, NULL);
    int reason = errno;
    if (result == 0)
        umount2(folder, MNT_DETACH);
    rmdir(folder);
    errno = reason;
    return result;
}
static long unshare_user(void) { return in_child(do_unshare_user); }
static long unshare_hostname(void) { return in_child(do_unshare_hostname); }
static long unshare_time(void) { return in_child(do_unshare_time); }
static long mount_other(void) { return in_child(do_mount); }
static long clone_user(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    return child < 0 ? child : waitpid((pid_t)child, NULL, 0);
}
static long clone3_user(void)
{
    uint64_t arguments[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
    long child = syscall(435, arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    return child < 0 ? child : waitpid((pid_t)child, NULL, 0);
}
static long enter_namespace(void) { return setns(-1, 0); }

static long set_hostname(void)
{
    char name[256];
    gethostname(name, sizeof name);
    return sethostname(name, strlen(name));
}
static long set_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now);
}
static long become_other(void) { return setuid(geteuid() == 0 ? 12345 : 0); }
static long open_by_handle(void) { return syscall(SYS_open_by_handle_at, AT_FDCWD, &(char[128]){8}, O_RDONLY); }
static long raise_nice(void) { return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1); }
static long device(void) { return mknod("listed/device", S_IFCHR | 0600, 1 << 8 | 3); }

static long open_socket(int family, int kind)
{
    int end = socket(family, kind | SOCK_CLOEXEC, 0);
    return end < 0 ? end : close(end);
}
static long inet(void) { return open_socket(AF_INET, SOCK_STREAM); }
static long inet6(void) { return open_socket(AF_INET6, SOCK_DGRAM); }
static long local(void) { return open_socket(AF_UNIX, SOCK_STREAM); }
static long netlink(void) { return open_socket(AF_NETLINK, SOCK_RAW); }
static long pair(void) { return socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}); }

#ifdef __x86_64__
static long x32_call(void) { return syscall(0x40000000 | 39); }
static long i386_call(void)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid */
    errno = result < 0 ? (int)-result : 0;
    return result < 0 ? -1 : 0;
}
#endif

static long prlimit_own(void) { return prlimit_of(0); }
static long priority_own(void) { return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)); }
static long affinity_own(void) { return affinity_of(0); }
static long scheduler_own(void) { return sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}); }
static void *nothing(void *value) { return value; }
static long thread(void)
{
    pthread_t made;
    int result = pthread_create(&made, NULL, nothing, NULL);
    errno = result;
    return result != 0 ? -1 : pthread_join(made, NULL);
}
static long prlimit_own_number(void) { return prlimit_of(getpid()); }
static long file_size(void) { return stat("unlisted/secret", &(struct stat){0}); }
static long file_mode(void) { return chmod("unlisted/secret", 0640); }
static long watch(void) { return inotify_add_watch(inotify_init(), "unlisted", IN_CREATE); }

static const struct {
    const char *name;
    long (*attempt)(void);
    int is_unsafe;
} attempts[] = {
#define ATTEMPT(name) {#name, name, 0}
#define UNSAFE(name) {#name, name, 1}
    ATTEMPT(starve), ATTEMPT(prlimit_other), ATTEMPT(prlimit_wide), ATTEMPT(priority_other), ATTEMPT(priority_group), UNSAFE(priority_user),
    ATTEMPT(ioprio_other), UNSAFE(ioprio_user), ATTEMPT(affinity_other), ATTEMPT(scheduler_other), ATTEMPT(schedparam_other),
    ATTEMPT(schedattr_other), ATTEMPT(migrate_other), ATTEMPT(trace), ATTEMPT(read_memory), ATTEMPT(write_memory),
    ATTEMPT(pidfd_open_other), ATTEMPT(pidfd_signal), ATTEMPT(pidfd_getfd), ATTEMPT(madvise_other), ATTEMPT(compare),
    ATTEMPT(signal_other), ATTEMPT(queue_signal),
    ATTEMPT(shared_memory), ATTEMPT(attach_memory), ATTEMPT(list_memory), ATTEMPT(semaphores), ATTEMPT(messages),
    ATTEMPT(posix_queue), ATTEMPT(key), ATTEMPT(keyring), ATTEMPT(uring), ATTEMPT(bpf), ATTEMPT(perf),
    ATTEMPT(unshare_user), ATTEMPT(unshare_hostname), ATTEMPT(unshare_time), UNSAFE(mount_other), ATTEMPT(clone_user),
    ATTEMPT(clone3_user), ATTEMPT(enter_namespace), UNSAFE(set_hostname), UNSAFE(set_clock), ATTEMPT(become_other),
    ATTEMPT(open_by_handle), ATTEMPT(raise_nice), ATTEMPT(device),
    ATTEMPT(inet), ATTEMPT(inet6), ATTEMPT(local), ATTEMPT(netlink), ATTEMPT(pair),
#ifdef __x86_64__
    ATTEMPT(x32_call), ATTEMPT(i386_call),
#endif
    ATTEMPT(prlimit_own), ATTEMPT(priority_own), ATTEMPT(affinity_own), ATTEMPT(scheduler_own), ATTEMPT(thread),
    ATTEMPT(prlimit_own_number), ATTEMPT(file_size), ATTEMPT(file_mode), ATTEMPT(watch),
};

int main(int count, char **arguments)
{
    if (count < 3)
        return 64;
    int is_filtered = prctl(PR_GET_SECCOMP) == 2;
    victim = atoi(arguments[1]);
    for (int index = 2; index < count; index++) {
        size_t at = 0;
        while (at < sizeof attempts / sizeof *attempts && strcmp(arguments[index], attempts[at].name) != 0)
            at++;
        if (at == sizeof attempts / sizeof *attempts)
            return 64;
        errno = 0;
        if (attempts[at].is_unsafe && !is_filtered)
            printf("%s unsafe\n", attempts[at].name);
        else if (attempts[at].attempt() < 0)
            printf("%s %d\n", attempts[at].name, errno);
        else
            printf("%s permitted\n", attempts[at].name);
        fflush(stdout);
    }
    return 0;
}
