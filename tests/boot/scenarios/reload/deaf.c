/*
 * deaf FILE...: has the kernel ask before it opens one of these, as a scanner for viruses
 * has, and does not answer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);

	if (fd < 0) {
		perror("fanotify_init");
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		if (fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, argv[i])) {
			perror(argv[i]);
			return 1;
		}
	}
	puts("deaf");
	fflush(stdout);
	pause();
	return 0;
}
