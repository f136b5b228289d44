/*
 * plug NAME...: takes the other end of TAP interfaces, which gives them carrier, and
 * keeps it.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
		int fd = open("/dev/net/tun", O_RDWR);

		strncpy(request.ifr_name, argv[i], IFNAMSIZ - 1);
		if (fd < 0 || ioctl(fd, TUNSETIFF, &request)) {
			perror(argv[i]);
			return 1;
		}
	}
	pause();
	return 0;
}
