/* The supervisor of a program: starts it, waits for its end, and kills every process that it has left behind.
 *
 *     supervisor HOST [OPTION=VALUE]... -- PROGRAM [ARGUMENT]...
 *
 * Its standard input is a socket to the host, whose process id is HOST. It kills all descendants when the program has
 * ended, when the host shuts the socket down, when the host has died, and on SIGTERM. No descendant escapes: a process whose
 * parent has died becomes a child of the supervisor (PR_SET_CHILD_SUBREAPER), also if it has a session of its own. Before it
 * exits, it writes how the program ended to the socket: `exit CODE`, `signal NUMBER`, or `failed ERRNO STEP` if the program
 * could not be started.
 *
 * The program gets /dev/null as its input, the outputs of the supervisor, a session of its own, the default actions of all
 * signals, and no other file descriptors. The options:
 *
 *     cwd=FOLDER          its working directory
 *     keep=FD             a file descriptor that it inherits
 *     remove=FILE         a file that is removed after its end, with its folder, whose descriptor is taken
 *     cpu=SECONDS         resource limits of each of its processes
 *     memory=BYTES
 *     file=BYTES
 *     processes=COUNT     a limit of the user, which root does not have
 *     sandbox=on          no access to files but those taken (Landlock), no effect on other processes (seccomp, and Landlock where
 *                         it can refuse signals), no capabilities
 *     network=off         no sockets (seccomp)
 *     take=cwd            a descriptor of its working directory
 *     take=read           descriptors of files and folders that it may read and execute in the sandbox
 *     take=write          descriptors of the ones that it may change as well
 *
 * The host sends the descriptors that are taken over the socket, in the order of the options. They are never opened by a name here:
 * a program could have put a link in its place.
 *
 * It uses no C library where it knows how to call the kernel itself: it starts in 0.16 ms, with a static library in 0.49 ms, with
 * a shared one in 0.63 ms. Calls of the kernel return the negative number of their error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers that are the same on every architecture; the headers of the system may be older than its kernel. */
enum {
    PIDFD_SEND_SIGNAL = 424,
    IO_URING_SETUP = 425,
    IO_URING_ENTER = 426,
    IO_URING_REGISTER = 427,
    PIDFD_OPEN = 434,
    CLONE3 = 435,
    CLOSE_RANGE = 436,
    PIDFD_GETFD = 438,
    PROCESS_MADVISE = 440,
    LANDLOCK_CREATE = 444,
    LANDLOCK_ADD = 445,
    LANDLOCK_RESTRICT = 446,
    PROCESS_MRELEASE = 448,
};

enum { CONTROL = 0, SWEEP_SECONDS = 5, STOPPING_PASSES = 200, USAGE = 64 };

/* ---- the kernel ---- */

#define CALL(number, ...) call(number, (const long[6]){__VA_ARGS__})

static inline __attribute__((always_inline)) long call(long number, const long *arguments)
{
#if defined(__x86_64__)
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = arguments[0];
    register long x1 __asm__("x1") = arguments[1];
    register long x2 __asm__("x2") = arguments[2];
    register long x3 __asm__("x3") = arguments[3];
    register long x4 __asm__("x4") = arguments[4];
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
    long result = syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
    return result < 0 ? -errno : result;
#endif
}

static int run(long *stack);

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n hlt\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n mov x0, sp\n bl begin\n");
#endif

__attribute__((used)) void begin(long *stack)
{
    CALL(SYS_exit_group, run(stack));
    __builtin_unreachable();
}

/* The compiler calls these two for structures. */
void *memset(void *target, int byte, size_t count)
{
    for (volatile char *at = target; count > 0; count--)
        *at++ = (char)byte;
    return target;
}

void *memcpy(void *restrict target, const void *restrict source, size_t count)
{
    const char *from = source;
    for (volatile char *at = target; count > 0; count--)
        *at++ = *from++;
    return target;
}
#else
int main(int count, char **arguments)
{
    (void)count;
    return run((long *)arguments - 1); /* the number of arguments and the variables are beside them */
}
#endif

/* ---- text ---- */

/* The value of an option, or NULL if the argument is another one. */
static const char *option(const char *argument, const char *name)
{
    while (*name != 0 && *argument == *name)
        argument++, name++;
    return *name == 0 && *argument == '=' ? argument + 1 : NULL;
}

static uint64_t parse(const char *digits)
{
    uint64_t number = 0;
    while (*digits >= '0' && *digits <= '9')
        number = 10 * number + (uint64_t)(*digits++ - '0');
    return number;
}

static char *add_text(char *end, const char *text)
{
    while (*text != 0)
        *end++ = *text++;
    return end;
}

static char *add_number(char *end, unsigned number)
{
    if (number >= 10)
        end = add_number(end, number / 10);
    *end = (char)('0' + number % 10);
    return end + 1;
}

/* ---- file descriptors ---- */

static void close_from(unsigned first, unsigned last)
{
    if (first > last || CALL(CLOSE_RANGE, first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd < 65536 && fd <= last; fd++) /* a kernel before 5.9 */
        CALL(SYS_close, fd);
}

/* Closes all file descriptors but the standard ones and one that is kept. */
static void close_others(int keep)
{
    if (keep < 3) {
        close_from(3, ~0U);
        return;
    }
    close_from(3, (unsigned)keep - 1);
    close_from((unsigned)keep + 1, ~0U);
}

static long open_path(const char *path, int flags)
{
    return CALL(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC);
}

/* ---- the sandbox, in the process that becomes the program ---- */

struct ruleset {
    uint64_t files, network, scope;
};

struct __attribute__((packed)) beneath {
    uint64_t access;
    int32_t parent;
};

enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_FOLDER = 1 << 3,
    MAKE_CHARACTER_DEVICE = 1 << 6,
    MAKE_BLOCK_DEVICE = 1 << 11,
    TRUNCATE = 1 << 14,
    IOCTL_DEVICE = 1 << 15,
    READING = EXECUTE | READ_FILE | READ_FOLDER,
    DEVICES = MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE, /* root could reach every file by its disk */
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE,
};

/* Makes the rules; without one all files are refused. */
static long make_ruleset(uint64_t *writing)
{
    long version = CALL(LANDLOCK_CREATE, 0, 0, 1);
    if (version < 0)
        return version;
    if (version < 3) /* it could not keep the program from truncating files */
        return -EOPNOTSUPP;
    struct ruleset rules = {.files = version < 5 ? IOCTL_DEVICE - 1 : 2 * IOCTL_DEVICE - 1, .scope = 3};
    size_t size = version < 4   ? offsetof(struct ruleset, network)
                  : version < 6 ? offsetof(struct ruleset, scope)
                                : sizeof rules;
    *writing = rules.files & ~(uint64_t)DEVICES;
    return CALL(LANDLOCK_CREATE, (long)&rules, (long)size, 0);
}

static long permit(long ruleset, long file, uint64_t access)
{
    /* A file refuses rights that only folders have. */
    struct beneath folder = {.access = access, .parent = (int32_t)file};
    struct beneath single = {.access = access & OF_FILES, .parent = (int32_t)file};
    long result = CALL(LANDLOCK_ADD, ruleset, 1, (long)&folder, 0);
    return result == -EINVAL ? CALL(LANDLOCK_ADD, ruleset, 1, (long)&single, 0) : result;
}

/* Gives up all capabilities, those that root would get by executing a program included. */
static long drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    /* Ends behind the last one; or at the first one without the right to, and then the other sets are still enough, because the
     * program gets no new privileges. */
    for (long number = 0; CALL(SYS_prctl, PR_CAPBSET_DROP, number) == 0; number++)
        ;
    long result = CALL(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
    return result < 0 ? result : CALL(SYS_capset, (long)&header, (long)none);
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define OTHER_CALLS 0x40000000u /* those of x32 */
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define OTHER_CALLS 0xffffffffu
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#define OTHER_CALLS 0xffffffffu
#endif

#ifdef ARCHITECTURE
#define ARGUMENT(index) (offsetof(struct seccomp_data, args) + (index) * sizeof(uint64_t)) /* its lower half, as all are little-endian */
#define LOAD(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offset))
#define JUMP(condition, value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | (condition) | BPF_K, (unsigned)(value), yes, no)
#define RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))

/* Calls that reach other processes of the same user, or things that they share without a file. */
static const unsigned refused[] = {
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, PROCESS_MADVISE, PROCESS_MRELEASE, SYS_kcmp,
    PIDFD_OPEN, PIDFD_GETFD, PIDFD_SEND_SIGNAL, SYS_setns, SYS_perf_event_open, SYS_bpf,
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl,
    SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink,
    SYS_keyctl, SYS_add_key, SYS_request_key,
    IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER, /* it does other calls unseen by this filter */
};

/* Calls that are permitted for the process itself, which is 0. Those for a kind of targets have it first: kinds up to `kinds` - 1
 * are the process and its group, the next one is all processes of the user. */
static const struct {
    unsigned number, kinds;
} own[] = {
    {SYS_prlimit64, 0},
    {SYS_sched_setaffinity, 0},
    {SYS_sched_setscheduler, 0},
    {SYS_sched_setparam, 0},
    {SYS_sched_setattr, 0},
    {SYS_migrate_pages, 0},
    {SYS_move_pages, 0},
    {SYS_setpriority, PRIO_USER},
    {SYS_ioprio_set, 3},
};

/* In a namespace of its own a user has all capabilities. */
enum { NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET };
enum { CLONE_NEW_TIME = 0x80 }; /* of `unshare` only; for `clone` it is part of the signal */
#endif

/* Refuses calls by which a program could affect other processes, and all sockets if it has no network: one to a service of this
 * machine may reach the network or other files as well. */
static long refuse_calls(int has_network)
{
#ifdef ARCHITECTURE
    static struct sock_filter filter[32 + 2 * sizeof refused / sizeof *refused + 7 * sizeof own / sizeof *own];
    struct sock_filter *end = filter;
    *end++ = LOAD(offsetof(struct seccomp_data, arch));
    *end++ = JUMP(BPF_JEQ, ARCHITECTURE, 1, 0);
    *end++ = REFUSE(EPERM);
    *end++ = LOAD(offsetof(struct seccomp_data, nr));
    *end++ = JUMP(BPF_JGE, OTHER_CALLS, 0, 1);
    *end++ = REFUSE(EPERM);
    for (unsigned at = 0; at < sizeof refused / sizeof *refused; at++) {
        *end++ = JUMP(BPF_JEQ, refused[at], 0, 1);
        *end++ = REFUSE(EPERM);
    }
    if (!has_network) {
        *end++ = JUMP(BPF_JEQ, SYS_socket, 0, 1);
        *end++ = REFUSE(EPERM);
    }
    for (unsigned at = 0; at < sizeof own / sizeof *own; at++) {
        unsigned kinds = own[at].kinds;
        *end++ = JUMP(BPF_JEQ, own[at].number, 0, 6);
        *end++ = LOAD(ARGUMENT(0));
        *end++ = JUMP(BPF_JGE, kinds ? kinds : ~0u, 3, 0);
        *end++ = LOAD(ARGUMENT(kinds ? 1 : 0));
        *end++ = JUMP(BPF_JEQ, 0, 0, 1);
        *end++ = RETURN(SECCOMP_RET_ALLOW);
        *end++ = REFUSE(EPERM);
    }
    for (int is_clone = 0; is_clone < 2; is_clone++) {
        *end++ = JUMP(BPF_JEQ, is_clone ? SYS_clone : SYS_unshare, 0, 4);
        *end++ = LOAD(ARGUMENT(0));
        *end++ = JUMP(BPF_JSET, is_clone ? NAMESPACES : NAMESPACES | CLONE_NEW_TIME, 1, 0);
        *end++ = RETURN(SECCOMP_RET_ALLOW);
        *end++ = REFUSE(EPERM);
    }
    *end++ = JUMP(BPF_JEQ, CLONE3, 0, 1); /* its flags are in memory; C libraries use `clone` instead */
    *end++ = REFUSE(ENOSYS);
    *end++ = RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog rules = {.len = (unsigned short)(end - filter), .filter = filter};
    return CALL(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&rules);
#else
    (void)has_network;
    return -EOPNOTSUPP;
#endif
}

/* ---- the program ---- */

/* The step at which the program could not be started. The new process writes it into the memory of the supervisor. */
static struct {
    const char *volatile step;
    volatile long error;
} failure;

static struct {
    long pid;
    int status;
    int has_ended;
} program;

/* What the program gets, prepared by the supervisor. */
static struct {
    int has_sandbox, has_network;
    long ruleset, cwd; /* descriptors, or negative */
} given = {.has_network = 1, .ruleset = -1, .cwd = -1};

static long fail(const char *step, long result)
{
    if (result < 0) {
        failure.error = -result;
        failure.step = step;
    }
    return result;
}

static void attempt(const char *step, long result)
{
    if (fail(step, result) < 0)
        CALL(SYS_exit_group, 127);
}

static void set_limit(int resource, const char *text, uint64_t more)
{
    uint64_t value = parse(text), limit[2] = {value, value + more}, before[2];
    if (CALL(SYS_prlimit64, 0, resource, 0, (long)before) == 0 && before[1] < limit[1]) { /* a lower one of the host stays */
        limit[1] = before[1];
        limit[0] = value < before[1] ? value : before[1];
    }
    attempt("limits", CALL(SYS_prlimit64, 0, resource, (long)limit, 0));
}

static void use_default_action(int signal)
{
    const struct { /* as the kernel has it */
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard = {SIG_DFL, 0, NULL, 0};
    CALL(SYS_rt_sigaction, signal, (long)&standard, 0, sizeof standard.mask); /* some cannot be changed */
}

/* Turns a new process, which shares the memory of the supervisor and nothing else that it changes, into the program. All
 * descriptors that it must not inherit are closed by `execve`. */
static __attribute__((noinline)) void become(char **options, char **arguments, char **variables, long supervisor)
{
    const char *value;
    const uint64_t no_signals = 0;

    attempt("session", CALL(SYS_setsid));
    attempt("session", CALL(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL));
    if (CALL(SYS_getppid) != supervisor)
        CALL(SYS_exit_group, 127);
    for (int number = 1; number < 65; number++)
        use_default_action(number);
    attempt("/dev/null", CALL(SYS_dup3, open_path("/dev/null", O_RDONLY), CONTROL, 0));
    for (char **it = options; *it != NULL; it++) {
        if ((value = option(*it, "cwd")) != NULL)
            attempt("cwd", CALL(SYS_chdir, (long)value));
        else if ((value = option(*it, "cpu")) != NULL)
            set_limit(RLIMIT_CPU, value, 1); /* SIGXCPU, and SIGKILL a second later */
        else if ((value = option(*it, "memory")) != NULL)
            set_limit(RLIMIT_AS, value, 0);
        else if ((value = option(*it, "file")) != NULL)
            set_limit(RLIMIT_FSIZE, value, 0);
        else if ((value = option(*it, "processes")) != NULL)
            set_limit(RLIMIT_NPROC, value, 0);
    }
    if (given.cwd >= 0)
        attempt("cwd", CALL(SYS_fchdir, given.cwd));
    if (given.has_sandbox) {
        attempt("privileges", CALL(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1));
        attempt("Landlock", CALL(LANDLOCK_RESTRICT, given.ruleset, 0));
        attempt("capabilities", drop_capabilities());
        attempt("seccomp", refuse_calls(given.has_network));
    }
    CALL(SYS_rt_sigprocmask, SIG_SETMASK, (long)&no_signals, 0, sizeof no_signals);
    attempt("exec", CALL(SYS_execve, (long)arguments[0], (long)arguments, (long)variables));
}

/* ---- the supervisor ---- */

/* The processes. It is opened before the program can lower the limits of the supervisor. */
static long proc;

/* The next one of the descriptors that the host sends. */
static long take_descriptor(long host)
{
    static struct {
        struct cmsghdr head;
        int list[253]; /* the most that a message has */
    } received;
    static size_t count, next;
    if (next == count) {
        char byte;
        struct iovec part = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &received, .msg_controllen = sizeof received};
        struct pollfd watched[] = {{.fd = CONTROL, .events = POLLIN}, {.fd = (int)host, .events = POLLIN}};
        long result = CALL(SYS_ppoll, (long)watched, 2);
        if (result >= 0 && watched[1].revents)
            return -ESRCH; /* the host has died */
        result = CALL(SYS_recvmsg, CONTROL, (long)&message, MSG_CMSG_CLOEXEC);
        if (result < 0)
            return result;
        if (message.msg_flags & MSG_CTRUNC)
            return -EMFILE;
        if (result == 0 || message.msg_controllen < sizeof received.head)
            return -EPIPE;
        count = (received.head.cmsg_len - sizeof received.head) / sizeof *received.list;
        next = 0;
    }
    return received.list[next++];
}

/* Takes the descriptors of the options, and makes the rules of the sandbox; returns the folder of the file to remove. All descriptors
 * are taken after a failure as well, because a socket with unread messages would lose the report. */
static long prepare(char **options, long host)
{
    uint64_t writing = 0;
    long removed = -1;
    for (char **it = options; *it != NULL; it++) {
        given.has_sandbox |= option(*it, "sandbox") != NULL;
        given.has_network &= option(*it, "network") == NULL;
    }
    if (given.has_sandbox)
        fail("Landlock", given.ruleset = make_ruleset(&writing));
    for (char **it = options; *it != NULL; it++) {
        const char *use = option(*it, "take");
        int is_removed = option(*it, "remove") != NULL;
        if (use == NULL && !is_removed)
            continue;
        long file = take_descriptor(host);
        if (fail("descriptors", file) < 0)
            return removed;
        if (is_removed) {
            removed = file;
        } else if (*use == 'c') {
            given.cwd = file;
        } else {
            if (failure.step == NULL)
                fail("Landlock", permit(given.ruleset, file, *use == 'w' ? writing : READING));
            CALL(SYS_close, file);
        }
    }
    return removed;
}

/* Reaps the children that have ended, adopted ones included; returns 0 if there are no children any more. */
static int reap(void)
{
    int status;
    long pid;
    while ((pid = CALL(SYS_wait4, -1, (long)&status, WNOHANG | __WALL, 0)) > 0) {
        if (pid == program.pid) {
            program.status = status;
            program.has_ended = 1;
        }
    }
    return pid == 0;
}

struct entry {
    uint64_t number;
    int64_t offset;
    uint16_t length;
    uint8_t kind;
    char name[];
};

/* The state of a process, and its parent; 0 if it has ended. */
static char state_of(const char *name, unsigned self, unsigned *parent)
{
    char path[32], text[512];
    *add_text(add_text(path, name), "/stat") = 0;
    long file = CALL(SYS_openat, proc, (long)path, O_RDONLY | O_CLOEXEC);
    if (file == -EMFILE || file == -ENFILE) { /* no more files: only children are found, which others become when those have ended */
        *parent = self;
        return CALL(SYS_waitid, P_PID, (long)parse(name), 0, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ? 'R' : 0;
    }
    long at = CALL(SYS_read, file, (long)text, sizeof text - 1);
    CALL(SYS_close, file);
    if (file < 0 || at <= 0)
        return 0;
    text[at] = 0;
    while (at > 0 && text[at] != ')') /* the name before it may contain anything */
        at--;
    *parent = (unsigned)parse(text + at + 4);
    return text[at + 2];
}

/* Sends a signal to all descendants; returns the number of those that may still start further processes. */
static int signal_descendants(int signal)
{
    static uint8_t is_ours[1 << 19]; /* a bit for each process id, which are below 2^22 */
    static _Alignas(struct entry) char entries[16384];
    unsigned self = (unsigned)CALL(SYS_getpid), parent;
    int found, running = 0;
    memset(is_ours, 0, sizeof is_ours);
    is_ours[self / 8] |= (uint8_t)(1 << self % 8);
    do { /* again if the numbers have begun anew, so that a child comes before its parent */
        long count;
        CALL(SYS_lseek, proc, 0, SEEK_SET);
        found = 0;
        while ((count = CALL(SYS_getdents64, proc, (long)entries, sizeof entries)) > 0) {
            for (long at = 0; at < count; at += ((struct entry *)(entries + at))->length) {
                const char *name = ((struct entry *)(entries + at))->name;
                unsigned pid = (unsigned)parse(name);
                if (pid == 0 || pid / 8 >= sizeof is_ours || is_ours[pid / 8] & 1 << pid % 8)
                    continue;
                char state = state_of(name, self, &parent);
                if (state == 0 || parent / 8 >= sizeof is_ours || !(is_ours[parent / 8] & 1 << parent % 8))
                    continue;
                is_ours[pid / 8] |= (uint8_t)(1 << pid % 8);
                CALL(SYS_kill, pid, signal);
                running += state != 'T' && state != 't' && state != 'Z' && state != 'X';
                found |= pid < parent;
            }
        }
    } while (found);
    return running;
}

static long seconds(void)
{
    struct timespec now;
    CALL(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
    return now.tv_sec;
}

/* Reads the signals that have arrived; returns 1 if SIGTERM is one of them. */
static int take_signals(long signals)
{
    struct signalfd_siginfo info;
    int is_term = 0;
    while (CALL(SYS_read, signals, (long)&info, sizeof info) == (long)sizeof info)
        is_term |= info.ssi_signo == SIGTERM;
    return is_term;
}

/* Kills all descendants until none is left, or those that are left cannot be killed, such as programs of another user. They
 * are stopped first, because processes that start others while some are killed would not come to an end. */
static void sweep(long signals)
{
    long deadline = seconds() + SWEEP_SECONDS;
    if (!program.has_ended) /* otherwise the number of its group may belong to another one */
        CALL(SYS_kill, -program.pid, SIGKILL);
    for (int pass = 0; reap() && pass < STOPPING_PASSES && signal_descendants(SIGSTOP) > 0; pass++)
        ;
    while (reap() && seconds() < deadline) {
        struct pollfd poller = {.fd = (int)signals, .events = POLLIN};
        struct timespec pause = {.tv_nsec = 5000000};
        signal_descendants(SIGKILL);
        CALL(SYS_ppoll, (long)&poller, 1, (long)&pause);
        take_signals(signals);
    }
}

/* Waits until the program has ended or must be killed. */
static void wait_for_end(long signals, long host)
{
    for (;;) {
        struct pollfd watched[] = {
            {.fd = CONTROL, .events = POLLIN},
            {.fd = (int)host, .events = POLLIN},
            {.fd = (int)signals, .events = POLLIN},
        };
        reap();
        if (program.has_ended || CALL(SYS_ppoll, (long)watched, 3) < 0 || watched[0].revents || watched[1].revents)
            return;
        if (take_signals(signals))
            return;
    }
}

static void report(void)
{
    char line[96], *end;
    if (failure.step != NULL) {
        end = add_number(add_text(line, "failed "), (unsigned)failure.error);
        end = add_text(add_text(end, " "), failure.step);
    } else if (WIFSIGNALED(program.status)) {
        end = add_number(add_text(line, "signal "), (unsigned)WTERMSIG(program.status));
    } else {
        end = add_number(add_text(line, "exit "), (unsigned)WEXITSTATUS(program.status));
    }
    *end++ = '\n';
    CALL(SYS_sendto, CONTROL, (long)line, end - line, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Removes a file from its folder, wherever that is by now, and the folder if it is empty. */
static void remove_with_folder(char *path, long folder)
{
    char *slash = path;
    for (char *at = path; *at != 0; at++)
        if (*at == '/')
            slash = at;
    if (CALL(SYS_unlinkat, folder, (long)(slash + 1), 0) < 0)
        return;
    *slash = 0;
    CALL(SYS_unlinkat, AT_FDCWD, (long)path, AT_REMOVEDIR);
}

static int run(long *stack)
{
    static const uint64_t all = ~(uint64_t)0, watched = 1ull << (SIGCHLD - 1) | 1ull << (SIGTERM - 1);
    int count = (int)stack[0], at = 2, keep = -1;
    char **arguments = (char **)(stack + 1), **variables = arguments + count + 1, *removed = NULL;
    while (at < count && !(arguments[at][0] == '-' && arguments[at][1] == '-')) {
        if (option(arguments[at], "keep") != NULL)
            keep = (int)parse(option(arguments[at], "keep"));
        else if (option(arguments[at], "remove") != NULL)
            removed = (char *)option(arguments[at], "remove");
        at++;
    }
    if (at + 1 >= count)
        return USAGE;
    arguments[at] = NULL; /* the end of the options */

    close_others(keep);
    use_default_action(SIGCHLD); /* a host that ignores it would make the children vanish */
    CALL(SYS_prctl, PR_SET_NAME, (long)"toolcrib-run");
    CALL(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
    CALL(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof all);
    long signals = CALL(SYS_signalfd4, -1, (long)&watched, sizeof watched, SFD_NONBLOCK | SFD_CLOEXEC);
    long host_pid = (long)parse(arguments[1]), self = CALL(SYS_getpid);
    /* Without it (a kernel before 5.3) the end of the socket shows the death of the host. */
    long host = CALL(PIDFD_OPEN, host_pid, 0);
    if (CALL(SYS_getppid) != host_pid)
        return 1; /* it has died already */

    proc = open_path("/proc", O_RDONLY | O_DIRECTORY);
    long folder = prepare(arguments + 2, host);

    /* Returns here twice, first in the new process; this one waits until that has become the program, or has ended. */
    if (failure.step == NULL)
        program.pid = fail("fork", CALL(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0));
    if (failure.step == NULL && program.pid == 0)
        become(arguments + 2, arguments + at + 1, variables, self);
    if (program.pid > 0) {
        CALL(SYS_close, STDOUT_FILENO); /* so that the outputs end with the program */
        CALL(SYS_close, STDERR_FILENO);
        if (keep >= 0)
            CALL(SYS_close, keep);
        wait_for_end(signals, host);
        sweep(signals);
    }
    if (removed != NULL)
        remove_with_folder(removed, folder);
    report();
    return 0;
}
