/*
 * taps FIRST LAST: makes interfaces ibN that say they are InfiniBand. They get their names
 * last: who is told by name to bring them up keeps their type from being set.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int any = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 3 || any < 0)
		return 1;
	for (int n = atoi(argv[1]); n <= atoi(argv[2]); n++) {
		struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
		int fd = open("/dev/net/tun", O_RDWR);

		snprintf(request.ifr_name, IFNAMSIZ, "new%d", n);
		if (fd < 0 || ioctl(fd, TUNSETIFF, &request) ||
		    ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND) || ioctl(fd, TUNSETPERSIST, 1)) {
			perror(request.ifr_name);
			return 1;
		}
		close(fd);
		snprintf(request.ifr_newname, IFNAMSIZ, "ib%d", n);
		if (ioctl(any, SIOCSIFNAME, &request)) {
			perror(request.ifr_newname);
			return 1;
		}
	}
	return 0;
}
