/*
 * hang WORD PROGRAM ARGUMENT...: runs PROGRAM; any child of it that begins as
 * `... WORD` stands still at once, as in a driver that never answers. Ends as
 * PROGRAM does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* True if its first argument is `word`. */
static int has(pid_t pid, const char *word)
{
	char path[32], line[256] = "";
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	return n > (ssize_t)strlen(line) + 1 && !strcmp(line + strlen(line) + 1, word);
}

int main(int argc, char **argv)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
	pid_t program, pid;
	int status;

	if (argc < 3)
		return 125;
	program = fork();
	if (program < 0)
		return 125;
	if (!program) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, program, 0, options) || ptrace(PTRACE_CONT, program, 0, 0)) {
		perror("hang");
		return 125;
	}
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int event = status >> 16, signal = 0;

		if (!WIFSTOPPED(status)) {
			if (pid == program)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			continue;
		}
		if (event == PTRACE_EVENT_EXEC && has(pid, argv[1]))
			continue;
		if (!event && WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
	return 125;
}
