/*
 * kill-at [-p] N PROGRAM ARGUMENT...: runs PROGRAM and kills it with all its children after
 * its Nth step, which is a write to sysfs, a change of a link by netlink, or a change of
 * a file *.undo. Ends as PROGRAM does, or by 137. With -p PROGRAM alone is killed, and its
 * children are waited for.
 *
 * The program is traced, and a filter stops it at these system calls only: it may
 * be linked in any way.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACED(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)

static void begin(char **command)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		TRACED(SYS_write),
		TRACED(SYS_sendto),
		TRACED(SYS_rename),
		TRACED(SYS_renameat),
		TRACED(SYS_renameat2),
		TRACED(SYS_unlink),
		TRACED(SYS_unlinkat),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("kill-at");
		_exit(125);
	}
	execvp(*command, command);
	perror(*command);
	_exit(127);
}

/* The text at an address of another process; cut where its page ends. */
static void text_of(pid_t pid, unsigned long long at, char *text, size_t size)
{
	size_t length = 0;

	while (length < size - 1) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, pid, (void *)(at + length), 0);
		if (errno)
			break;
		for (size_t i = 0; i < sizeof(word) && length < size - 1; i++) {
			text[length] = (char)(word >> 8 * i);
			if (!text[length++])
				return;
		}
	}
	text[length] = 0;
}

static int is_step(pid_t pid)
{
	struct user_regs_struct regs;
	char text[PATH_MAX] = "", link[64];
	unsigned long long name;
	long header;
	ssize_t n;

	if (ptrace(PTRACE_GETREGS, pid, 0, &regs))
		return 0;
	switch (regs.orig_rax) {
	case SYS_write:
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, (int)regs.rdi);
		n = readlink(link, text, sizeof(text) - 1);
		return n > 5 && !strncmp(text, "/sys/", 5);
	case SYS_sendto:
		/* Of a request by netlink: its length, then its type. */
		errno = 0;
		header = ptrace(PTRACE_PEEKDATA, pid, (void *)regs.rsi, 0);
		return !errno && (unsigned int)header == regs.rdx &&
		       (header >> 32 & 0xffff) == RTM_SETLINK;
	case SYS_unlink:
		name = regs.rdi;
		break;
	case SYS_rename:
	case SYS_unlinkat:
		name = regs.rsi;
		break;
	default:
		name = regs.r10;
	}
	text_of(pid, name, text, sizeof(text));
	return strstr(text, ".undo") != NULL;
}

int main(int argc, char **argv)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
			     PTRACE_O_TRACESYSGOOD;
	int at, status, steps = 0, alone = argc > 1 && !strcmp(argv[1], "-p"), killed = 0;
	pid_t program, pid;

	argc -= alone;
	argv += alone;
	if (argc < 3)
		return 125;
	at = atoi(argv[1]);
	program = fork();
	if (program < 0)
		return 125;
	if (!program)
		begin(argv + 2);
	if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, program, 0, options) || ptrace(PTRACE_CONT, program, 0, 0))
		return 125;
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int event = status >> 16, signal = 0, go = PTRACE_CONT;

		if (!WIFSTOPPED(status)) {
			if (pid != program || killed)
				continue;
			/* Its children go on without us where it has ended by itself. */
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			/* The step is done; our end is theirs (EXITKILL). */
			if (!alone)
				return 137;
			kill(program, SIGKILL);
			killed = 1;
		} else if (event == PTRACE_EVENT_SECCOMP && is_step(pid) && ++steps == at)
			go = PTRACE_SYSCALL;
		else if (!event && WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		ptrace(go, pid, 0, signal);
	}
	return killed ? 137 : 125;
}
