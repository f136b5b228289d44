/*
 * Preloaded into every program of the guest; acts in ibprov alone. Counts its
 * steps, which are the writes to sysfs and what it remembers in files *.undo,
 * and kills ibprov and its child before or after the one that /run/kill-at
 * names: "N before" or "N after". /run/kill-count is the count, shared by both
 * processes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int *count;
static int at;
static int after;

static int is_ibprov(const char *link)
{
	char exe[PATH_MAX];
	ssize_t n = readlink(link, exe, sizeof(exe) - 1);

	if (n < 7)
		return 0;
	exe[n] = 0;
	return !strcmp(exe + n - 7, "/ibprov");
}

__attribute__((constructor)) static void begin(void)
{
	char line[32] = "", when[16] = "";
	int fd;

	if (!is_ibprov("/proc/self/exe"))
		return;
	fd = open("/run/kill-at", O_RDONLY);
	if (fd < 0)
		return;
	if (read(fd, line, sizeof(line) - 1) > 0)
		sscanf(line, "%d %15s", &at, when);
	close(fd);
	after = !strcmp(when, "after");
	fd = open("/run/kill-count", O_RDWR);
	if (fd < 0)
		return;
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		count = NULL;
	close(fd);
}

static void end(void)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/%d/exe", getppid());
	if (is_ibprov(link))
		kill(getppid(), SIGKILL);
	kill(getpid(), SIGKILL);
	pause();
}

/* True for the step after which to die. */
static int step(void)
{
	int n;

	if (!count)
		return 0;
	n = atomic_fetch_add(count, 1) + 1;
	if (n != at)
		return 0;
	if (!after)
		end();
	return 1;
}

static int to_sysfs(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	if (!count)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	return n > 5 && !strncmp(path, "/sys/", 5);
}

ssize_t write(int fd, const void *data, size_t length)
{
	ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
	int last = to_sysfs(fd) && step();
	ssize_t done = real(fd, data, length);

	if (last)
		end();
	return done;
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
	int last = strstr(to, ".undo") && step();
	int done = real(from, to);

	if (last)
		end();
	return done;
}

int unlink(const char *path)
{
	int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
	int last = strstr(path, ".undo") && step();
	int done = real(path);

	if (last)
		end();
	return done;
}
