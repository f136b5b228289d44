/*
 * tap-ib NAME: makes an interface that says it is InfiniBand. It has no card and no
 * driver of its own, and is all that who asks "whose is this interface?" needs.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR);

	if (argc != 2 || fd < 0)
		return 1;
	strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &request) || ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND) ||
	    ioctl(fd, TUNSETPERSIST, 1)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
